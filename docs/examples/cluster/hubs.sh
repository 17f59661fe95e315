#!/bin/sh
# Three hubs on this machine that work as one, with agents at b and c. What ends is started again, as
# by systemd. Ctrl-C ends all, and removes what they have stored.
#
#   ./hubs.sh              # needs dragoman in the PATH
#   ./conversation.sh      # in a second terminal
#
# The hubs listen on port 18080 of this machine and the five above it; PORT names another one.
set -eu
umask 077 # the secret is for the hubs alone
port=${PORT:-18080}
dir=${TMPDIR:-/tmp}/dragoman-cluster-$port
mkdir -m 700 "$dir" || {
	echo "The hubs run already, or were killed: then remove $dir." >&2
	exit 1
}

# keep NAME COMMAND... starts a command again whenever it ends, until it gets SIGTERM.
keep() {
	name=$1
	shift
	trap 'kill "$pid" 2>/dev/null || :; wait "$pid" || :; exit 0' TERM
	while :; do
		"$@" >>"$dir/$name.log" 2>&1 &
		pid=$!
		echo "$pid" >"$dir/$name.pid"
		wait "$pid" || :
		sleep 5 # as deploy/systemd/cluster.conf: a hub that comes back within a second ends its tasks itself
	done
}

kept=
trap 'trap - EXIT; kill $kept 2>/dev/null || :; wait; rm -rf "$dir"; echo "All have ended."' EXIT
trap 'exit 0' INT TERM

# The hubs share a secret, and know where to find each other.
od -An -N32 -tx1 /dev/urandom | tr -d ' \n' >"$dir/secret"
peers=127.0.0.1:$((port + 3)),127.0.0.1:$((port + 4)),127.0.0.1:$((port + 5))
n=0
for hub in a b c; do
	DRAGOMAN_CLUSTER_SECRET_FILE=$dir/secret keep "$hub" dragoman serve --hub-name "$hub" --data-dir "$dir/$hub" \
		--http-addr "127.0.0.1:$((port + n))" --grpc-addr "" --pi-addr "" \
		--cluster-listen "127.0.0.1:$((port + 3 + n))" --cluster-peers "$peers" &
	kept="$kept $!"
	n=$((n + 1))
done

# agent HUB-URL NAME CAPABILITY SCRIPT runs an agent whose answer is what a script prints.
agent() {
	keep "$2" dragoman agent --dialect native --name "$2" --capability "$3" --wait=1m --hub "$1" -- sh -c "$4" &
	kept="$kept $!"
}
agent "http://127.0.0.1:$((port + 1))" counter counting 'for n in one two three four five six; do printf "%s " $n; sleep 1; done'
agent "http://127.0.0.1:$((port + 1))" thinker-b thinking 'sleep 5; echo "The thinker at hub b says yes."'
agent "http://127.0.0.1:$((port + 2))" thinker-c thinking 'sleep 5; echo "The thinker at hub c says yes."'

echo "Three hubs start. Their data and logs are in $dir until Ctrl-C."
echo "Now run ./conversation.sh in another terminal."
wait
