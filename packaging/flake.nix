# Unbuilt: written where no nix runs. `nix build ./packaging` from a checkout.
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
          nativeBuildInputs = with pkgs; [ meson ninja pkg-config python3 ];
          buildInputs = with pkgs; [ curl libgit2 libseccomp ncurses pcre2 sqlite tree-sitter zstd ];
          mesonBuildType = "release";
          mesonFlags = [ "-Dshell=enabled" "-Dtests=false" ];
          postPatch = "patchShebangs scripts";
        };
      });
    };
}
