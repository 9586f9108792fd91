#!/bin/bash
LIMIT=3
readonly OTHER="b"

walk() {
  local total=0 item
  for item in "$@"; do
    if [ -f "$item" ] && check "$item"; then
      total=$((total + 1))
    elif [[ $item == x* ]]; then
      continue
    else
      return 1
    fi
  done
  while read -r line; do
    case "$line" in
      a*) one "$line" ;;
      *) two ;;
    esac
  done < <(list_all)
  out="$(count "$total" | sort)"
  echo "$out"
}

function other { walk "$LIMIT"; }
other
