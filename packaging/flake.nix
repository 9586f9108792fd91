# Unbuilt with nixpkgs: evaluated where it cannot be had (README.md beside it says how). `nix build ./packaging` from a checkout.
{
  inputs.nixpkgs.url = "github:NixOS/nixpkgs/nixos-unstable";
  outputs = { self, nixpkgs }:
    let
      systems = [ "x86_64-linux" "aarch64-linux" ];
      each = f: nixpkgs.lib.genAttrs systems (system: f nixpkgs.legacyPackages.${system});
    in {
      packages = each (pkgs: rec {
        default = kvist;
        kvist = pkgs.stdenv.mkDerivation {
          pname = "kvist";
          version = "0.1.0";
          src = ../.;
          # pip: the Python that builds is the one that kvist-fetch runs with, and that downloads with it.
          nativeBuildInputs = with pkgs; [ meson ninja pkg-config (python3.withPackages (p: [ p.pip ])) ];
          buildInputs = with pkgs; [ curl libgit2 libseccomp ncurses pcre2 sqlite tree-sitter zeromq zstd ];
          mesonBuildType = "release";
          mesonFlags = [ "-Dshell=enabled" "-Dtests=false" ];
          postPatch = "patchShebangs scripts";
          meta = {
            description = "Terminal coding agent whose memory you can see and correct";
            license = pkgs.lib.licenses.mit;
            mainProgram = "kvist";
            platforms = systems;
          };
        };
      });
    };
}
