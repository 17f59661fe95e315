#!/bin/sh
# A conversation at the three hubs of ./hubs.sh, two of which are killed in its middle.
set -eu
port=${PORT:-18080}
dir=${TMPDIR:-/tmp}/dragoman-cluster-$port
a=http://127.0.0.1:$port
c=http://127.0.0.1:$((port + 2))

say() { printf '\n== %s\n' "$*"; }

# ready waits until all agents are known at hub a.
ready() {
	tries=0
	while [ $tries -lt 60 ]; do
		case $(dragoman agents --hub "$a" 2>&1) in
		*counter*thinker-b*thinker-c*) return ;;
		esac
		tries=$((tries + 1))
		sleep 1
	done
	echo "The agents of ./hubs.sh have not come; its logs are in $dir." >&2
	exit 1
}

ready
say "Three hubs work as one."
dragoman hubs --hub "$a"

say "Somebody asks at hub a. The agent is at hub b."
dragoman ask counter "Please count." --thread example --hub "$a"

say "Somebody reads the next answer at hub c, which is killed in its middle."
task=$(dragoman delegate counter "Once more, please." --thread example --hub "$c")
dragoman tail "$task" --hub "$c" &
sleep 4
kill -9 "$(cat "$dir/c.pid")"
wait $! || :
say "Hub c is dead. Hub a goes on with the same answer."
dragoman tail "$task" --hub "$a"

say "Hub c comes back, with its agent."
ready
say "Somebody asks whoever thinks. The hub of that agent is killed while it does."
dragoman ask capability:thinking "Shall we meet?" --thread example --hub "$a" &
sleep 2
hub=$(dragoman hubs --hub "$a" | awk '$4 > 0 && $1 != "HUB" { print $1; exit }') # with a task
kill -9 "$(cat "$dir/$hub.pid")"
say "Hub $hub is dead. The question goes on elsewhere."
wait $!

say "This is what was asked, wherever that was."
dragoman tasks --thread example --hub "$a"
dragoman hubs --hub "$a"
