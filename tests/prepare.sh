# For run.sh and sanitize.sh: goes to the checkout's root, installs what is missing, finds Consul.

cd -P -- "$(dirname -- "${BASH_SOURCE[0]}")/.."

[ "${LICTOR_SKIP_INSTALL-}" = 1 ] || tests/install-deps.sh test

# Steps that need a network come first, so that they fail before a long build.
CONSUL_BIN="$(consul/get-consul.sh)"
export CONSUL_BIN
