#!/bin/sh
# The real binary in a real terminal: kvist with a scripted engine inside tmux. Loads, answers, asks, resizes, shows the cache,
# quits, and leaves the answer and the session's id on the screen; then replay shows the same cache panel.
#
#   tmux_test.sh KVIST        skipped (77) where there is no tmux or no git
set -u
kvist=$(realpath "$1") || exit 1
export LC_ALL=C.UTF-8
command -v tmux >/dev/null 2>&1 || { echo "no tmux: skipped"; exit 77; }
command -v git >/dev/null 2>&1 || { echo "no git: skipped"; exit 77; }
locale -a 2>/dev/null | grep -qi '^C.utf-\?8$' || { echo "no C.UTF-8 locale: skipped"; exit 77; }

dir=$(mktemp -d) || exit 1
socket=kvist-test-$$
t() { tmux -u -L "$socket" -f /dev/null "$@"; }
trap 't kill-server 2>/dev/null; rm -rf "$dir"' EXIT INT TERM

mkdir "$dir/tree" && cd "$dir/tree" && git init -q . || exit 1
printf 'int gcd(int a, int b)\n{\n    return b ? gcd(b, a %% b) : a;\n}\n' > gcd.c
git add gcd.c && git -c user.name=t -c user.email=t@example.org commit -qm one || exit 1
cat > "$dir/script" <<'END'
model scripted
ctx 8192
lanes 8
answer <<STOP
I will look.
<tools>
{"name":"shell","arguments":{"command":"ls"}}
</tools>
STOP
answer The function **gcd** divides 日本語 until nothing is left.
END

screen() { t capture-pane -p -t s; }
# The cache panel: what stands right of the first upright line; without the chat's part of the footer.
right_of() { awk -F'│' 'NF == 2 { print $2 }' "$@"; }
panel() { screen | right_of; }
# Waits until the screen holds a text; a minute (longer under a sanitizer) is a guard against hanging, no expectation.
wait_for() {
    for _ in $(seq 1 $((600 * ${KVIST_TEST_PATIENCE:-1}))); do
        if screen | grep -qF -- "$1"; then return 0; fi
        sleep 0.1
    done
    echo "never seen: $1"
    screen
    exit 1
}
wait_gone() {
    for _ in $(seq 1 $((600 * ${KVIST_TEST_PATIENCE:-1}))); do
        if ! screen | grep -qF -- "$1"; then return 0; fi
        sleep 0.1
    done
    echo "never gone: $1"
    screen
    exit 1
}
absent() {
    if screen | grep -qF -- "$1"; then echo "still there: $1"; screen; exit 1; fi
}

t new-session -d -x 130 -y 36 -s s \
    "cd '$dir/tree'; export KVIST_HOME='$dir/home'; '$kvist' --fake-script '$dir/script' 2>'$dir/err'; echo status \$?; exec sleep 600"
wait_for 'Ask about this tree'
wait_for 'scripted'
t send-keys -t s 'what does gcd do?' Enter
wait_for 'allow? $ ls'
sleep 0.6 # a key that comes with the question is no answer to it
t send-keys -t s d
wait_for '── $ ls ──'
t send-keys -t s Escape
wait_gone '── $ ls ──' # Escape and y that come together are Alt-y
t send-keys -t s y
wait_for 'The function gcd divides 日本語 until nothing is left.'
wait_for 'ledger of turn 1'
wait_for 'new '
t resize-window -t s -x 60 -y 16
wait_for 'F2 cache'
absent 'ledger of turn 1'
t send-keys -t s F2
wait_for '2 spans'
t send-keys -t s 2
wait_for 'spans by place'
t send-keys -t s 1 F2
t resize-window -t s -x 20 -y 5
wait_for 'kvist needs'
t resize-window -t s -x 130 -y 36
wait_for 'ledger of turn 1'
panel > "$dir/live"
# A second one on the same session may look, and nothing else.
id=$(KVIST_HOME=$dir/home "$kvist" log list --json | sed -n '1s/.*"id":"\([^"]*\)".*/\1/p')
t new-session -d -x 100 -y 24 -s second \
    "cd '$dir/tree'; export KVIST_HOME='$dir/home'; '$kvist' --fake-script '$dir/script' --resume '$id'; echo status \$?; exec sleep 600"
screen() { t capture-pane -p -t second; }
wait_for 'another kvist has this session open'
wait_for 'replay, turn 1 of 1'
t send-keys -t second q
wait_for 'status 0'
screen() { t capture-pane -p -t =s:; }
t send-keys -t s C-d
wait_for 'status 0'
wait_for 'kvist --resume '
wait_for 'divides'
[ -s "$dir/err" ] && { echo "on stderr:"; cat "$dir/err"; exit 1; }

id=$(screen | sed -n 's/.*kvist --resume \([^ ]*\).*/\1/p')
KVIST_HOME=$dir/home "$kvist" replay "$id" --text 130x36 > "$dir/replay" || exit 1
grep -q 'ledger of turn 1' "$dir/replay" || { echo "replay shows no ledger"; cat "$dir/replay"; exit 1; }
# A session without a turn is not kept, and nothing says how to go on with it.
t new-session -d -x 100 -y 24 -s empty \
    "cd '$dir/tree'; export KVIST_HOME='$dir/home'; '$kvist' --fake-script '$dir/script'; echo status \$?; exec sleep 600"
screen() { t capture-pane -p -t empty; }
wait_for 'scripted'
wait_for 'rows '
t send-keys -t empty C-d
wait_for 'status 0'
absent 'kvist --resume'

# What cannot be opened is told on the screen, and again where it was started.
t new-session -d -x 100 -y 24 -s bad \
    "cd '$dir/tree'; export KVIST_HOME='$dir/home'; '$kvist' --model '$dir/script'; echo status \$?; exec sleep 600"
screen() { t capture-pane -p -t bad; }
wait_for 'not a GGUF file'
wait_for 'not open'
t send-keys -t bad C-d
wait_for 'status 1'
wait_for 'kvist: '

# The cache panel of the replay is the live one's, line for line.
right_of "$dir/replay" > "$dir/replayed"
grep -q 'ledger of turn 1' "$dir/replayed" && diff "$dir/live" "$dir/replayed" || { echo "live and replay differ"; exit 1; }
echo "passed"
