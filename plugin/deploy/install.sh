#!/bin/sh
# Puts the plugin and its network configuration on a node and keeps an agent at work there, or takes them away
# again. TASK says which of both; nothing else ever uninstalls, neither a reboot nor an update.
#
# It runs in the container and sees the node at /node: `root` is the node's own root directory, read only, for
# programs that must run there; `bin` and `net.d` are the two directories it writes to. What these held under the
# same names before is kept in `bin/concorde.before`, whose existence says that the rest is this script's.
set -u

: "${TASK:=install}" "${CNI_BIN_DIR:=/opt/cni/bin}" "${CONFLIST:=00-concorde.conflist}"
: "${QUIET:=45}" "${NODE:=/node}" "${PLUGIN:=/opt/concorde}" "${CONFIGURATION:=/etc/concorde}" "${STATE:=/run/concorde}"
bin=$NODE/bin networks=$NODE/net.d before=$NODE/bin/concorde.before
: "${ACCOUNT:=/var/run/secrets/kubernetes.io/serviceaccount}" "${LISTEN=127.0.0.1:9725}"
: "${KEY:=/etc/concorde-fabric/key}"
mine=$CONFIGURATION/concorde.conflist
wanted=$mine said= quiet=0 next=concorde agent= key=

# With a different root directory, in the node's network: the pod has hostNetwork. Tests have no other root.
on_node() { ${ENTER-chroot "$NODE/root"} "$@"; }
plugin() { on_node "$CNI_BIN_DIR/concorde" "$@" 2>&1; }
candidate() { on_node "$CNI_BIN_DIR/$next" "$@" 2>&1; }

say() { printf '%s\n' "$*"; }

# What keeps the pod from being ready; said once, not at every look.
not_yet() {
    rm -f "$STATE/done"
    printf '%s\n' "$1" >"$STATE/problems"
    [ "$1" = "$said" ] || say "$1"
    said=$1
}

finished() {
    [ -e "$STATE/done" ] || say "$1"
    : >"$STATE/problems"
    : >"$STATE/done"
    said=
}

# Replaces a file at once: whoever reads has the old one or the new one, after a loss of power too. Files that are
# right stay untouched.
put() {
    cmp -s "$1" "$2" && return
    cp "$1" "${2%/*}/.concorde.new" && chmod "$3" "${2%/*}/.concorde.new" && sync "${2%/*}/.concorde.new" \
        && mv -f "${2%/*}/.concorde.new" "$2"
}

# What was there may be a link that leads nowhere from here.
put_back() { cp -pP "$before/${1##*/}" "${1%/*}/.concorde.new" && mv -f "${1%/*}/.concorde.new" "$1"; }
was_there() { [ -e "$1" ] || [ -L "$1" ]; }

keep_what_was_before() {
    [ -d "$before" ] && return
    rm -rf "$before.new" && mkdir "$before.new" || return
    for file in "$bin/concorde" "$bin/concorde-networks" "$networks/$CONFLIST"; do
        ! was_there "$file" || cp -pP "$file" "$before.new/" || return
    done
    mv "$before.new" "$before"
}

# The library first, under its own digest: a plugin that is just running keeps the one it began with. Then the
# executable under a name that no runtime calls, to look with whether this version can work here. What a runtime
# calls is the former version until this one takes its name, whole.
put_candidate() {
    mkdir -p "$bin/concorde.lib" || return
    for library in "$PLUGIN"/concorde.lib/*; do
        here=$bin/concorde.lib/${library##*/}
        [ ! -d "$here" ] || continue
        rm -rf "$here.new" && cp -r "$library" "$here.new" && sync -f "$here.new" || return
        say "${library##*/}" >>"$before/libraries" && mv "$here.new" "$here" || return
    done
    next=concorde
    if cmp -s "$PLUGIN/concorde" "$bin/concorde"; then rm -f "$bin/concorde.next"; return; fi
    next=concorde.next
    put "$PLUGIN/concorde" "$bin/$next" 755
}
take_over() {
    put "$PLUGIN/concorde-networks" "$bin/concorde-networks" 755 || return
    [ "$next" = concorde ] || mv -f "$bin/$next" "$bin/concorde"
}
stays() { [ "$next" = concorde ] || [ ! -e "$bin/concorde" ] || say "; the version before stays"; }

# Runtimes take the first configuration, by name.
configurations() { ls "$networks" | grep -E '\.(conf|conflist|json)$' | LC_ALL=C sort; }
first() { configurations | head -n 1; }
other() { configurations | grep -vFx -m 1 "$CONFLIST"; }

# In a chain ours stands behind what the runtime has without us. That one's file stays as it is: whoever wrote it may
# write it again, and ours follows. `gather` writes down both, and `compose` makes one list of them.
chained() { [ "$(cat "$CONFIGURATION/chain" 2>/dev/null)" = true ]; }
gather() {
    chained || return 0
    wanted=$STATE/concorde.conflist
    other=$(other) || return
    { printf '{"network": '; cat "$networks/$other"; printf ', "behind": '; cat "$mine"; printf '}'; } >"$STATE/lists.new"
}
gathered() { ! chained || cmp -s "$STATE/lists.new" "$STATE/lists"; }
compose() {
    gathered && return
    found=$(candidate chain <"$STATE/lists.new") && printf '%s\n' "$found" >"$wanted" \
        && mv "$STATE/lists.new" "$STATE/lists"
}

install() {
    if [ -e "$STATE/done" ] && gather && gathered && cmp -s "$wanted" "$networks/$CONFLIST" \
        && cmp -s "$PLUGIN/concorde" "$bin/concorde"
    then
        return
    fi
    mkdir -p "$bin" "$networks"
    if ! on_node test -x /usr/bin/python3; then
        not_yet "lacking on this node: /usr/bin/python3 (Python 3.9 or newer, its standard library)"
    elif ! { keep_what_was_before && put_candidate; }; then
        not_yet "cannot write to the node's $CNI_BIN_DIR; see above"
    elif ! on_node test -x "$CNI_BIN_DIR/$next"; then
        not_yet "the DaemonSet's volume cni-bin is not $CNI_BIN_DIR, which the ConfigMap calls bin-dir"
    elif ! gather; then
        not_yet "there is no other network configuration here to stand behind"
    elif ! compose; then
        not_yet "cannot stand behind $other: $found$(stays)"
    elif ! found=$(candidate examine <"$wanted"); then
        not_yet "lacking on this node: $found$(stays)"
    elif ! take_over; then
        not_yet "cannot write to the node's $CNI_BIN_DIR; see above"
    elif ! found=$(plugin renew <"$wanted"); then
        not_yet "running pods lack something that this version gives them: $found"
    elif ! { put "$wanted" "$before/installed" 644 && put "$wanted" "$networks/$CONFLIST" 644; }; then
        not_yet "cannot write the network configuration; see above"
    elif [ "$(first)" != "$CONFLIST" ]; then
        not_yet "runtimes take the first network configuration, and $(first) is before $CONFLIST"
    else
        notes=$(plugin examine <"$wanted" | grep '^note: ')
        chained && behind=", behind $other"
        finished "installed: $CNI_BIN_DIR/concorde and $CONFLIST${behind:-}${notes:+
$notes}"
        end_agent # it is the former version's, or has the former configuration
    fi
}

# The agent runs in the node's root, as the plugin does. What this container has of its account and of the cluster's
# key it is given open: from there their paths lead nowhere. The key's Secret may come, change and go; without it, or
# with one that is too short, the agent looks after the node, and takes no part in the fabric. Where the version
# before stays it is that one's, with what was installed, and with the options it knows.
keys() { cat "$KEY" 2>/dev/null; }
option() { case $known in *"$1 "*) given="$given $1 $2" ;; esac; }
attend() {
    [ -e "$before/installed" ] || return
    [ "$(keys)" = "$key" ] || end_agent
    [ -z "$agent" ] || ! kill -0 "$agent" 2>/dev/null || return
    known=$(plugin --help)
    case $known in *"concorde agent "*) ;; *) return ;; esac
    [ -d "$ACCOUNT" ] && account=$ACCOUNT || account=/
    key=$(keys) given='' opened=/dev/null
    [ -z "$LISTEN" ] || option --listen "$LISTEN"
    [ -z "${NODE_NAME:-}" ] || option --node "$NODE_NAME"
    option --account /proc/self/fd/3
    bare=${key#"${key%%[![:space:]]*}"} # as the agent reads it: without white space around it
    bare=${bare%"${bare##*[![:space:]]}"}
    if [ "${#bare}" -ge 16 ]; then
        opened=$KEY
        option --key /proc/self/fd/4
    elif [ -n "$key" ]; then
        say "Secret concorde-fabric: its key must have at least 16 bytes; until then no agent takes part in the fabric"
    fi
    (exec ${ENTER-chroot "$NODE/root"} "$CNI_BIN_DIR/concorde" agent $given \
        <"$before/installed" 3<"$account" 4<"$opened") &
    agent=$!
}
end_agent() { [ -z "$agent" ] || kill "$agent" 2>/dev/null; agent=; }

# The configuration goes as soon as another takes its place. Without any, a runtime can end no pod, and it goes
# on ending pods - its kubelet looks once a minute - long after the last one is gone; each time the plugin makes
# its store anew. So then the configuration stays until that has not happened for QUIET looks. Pods of a chain go on
# without us; one that is just being attached calls the plugin still, so that takes a few looks, too.
uninstall() {
    if [ ! -d "$before" ]; then
        [ -e "$STATE/done" ] || finished "nothing is installed here"
        return
    fi
    looks=$QUIET waits="the runtime is done with its pods; no other network configuration is here"
    if was_there "$before/$CONFLIST"; then
        put_back "$networks/$CONFLIST" || return
        looks=0
    elif other >/dev/null; then
        rm -f "$networks/$CONFLIST"
        looks=0
    fi
    if chained && [ "$looks" -eq 0 ]; then
        looks=$((QUIET < 3 ? QUIET : 3)) waits="no pod is being attached"
    fi
    installed=$before/installed
    [ -e "$installed" ] || chained || installed=$mine
    if [ -e "$installed" ] && on_node test -x "$CNI_BIN_DIR/concorde"; then
        if ! found=$(plugin dismantle <"$installed"); then
            not_yet "$found; delete them, or drain this node"
            return
        fi
        if [ "$found" = "nothing to remove" ]; then quiet=$((quiet + 1)); else quiet=0; fi
        if [ "$quiet" -lt "$looks" ]; then
            not_yet "waiting until $waits"
            return
        fi
    fi
    remove
    finished "uninstalled: the node is as it was before"
}

remove() {
    was_there "$before/$CONFLIST" || rm -f "$networks/$CONFLIST"
    rm -f "$bin/concorde.next"
    for program in concorde concorde-networks; do
        if was_there "$before/$program"; then put_back "$bin/$program" || return; else rm -f "$bin/$program"; fi
    done
    while read -r library; do
        grep -qs "$library" "$bin/concorde" || rm -rf "$bin/concorde.lib/$library"
    done <"$before/libraries"
    rmdir "$bin/concorde.lib" 2>/dev/null
    rm -rf "$before"
}

case "${1:-run}" in
    run | once) ;;
    # The startup probe: its words are in the pod's events.
    ready) cat "$STATE/problems" 2>/dev/null; [ -e "$STATE/done" ]; exit ;;
    *) say "no such command: $1"; exit 2 ;;
esac

case "$TASK" in install | uninstall) ;; *) say "TASK is $TASK; it is install or uninstall"; exit 2 ;; esac
trap 'end_agent; exit 0' TERM INT
mkdir -p "$STATE"
rm -f "$STATE/done"
while :; do
    "$TASK"
    [ "${1:-run}" = run ] || break
    [ "$TASK" = uninstall ] || attend
    # Done, it costs next to nothing: somebody may be measuring. A changed ConfigMap arrives within a minute too.
    [ -e "$STATE/done" ] && pause=60 || pause=2
    sleep "$pause" & wait "$!"
done
[ -e "$STATE/done" ]
