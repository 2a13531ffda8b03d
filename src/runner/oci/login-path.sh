# Keeps the PATH of the sandbox in login shells, because /etc/profile replaces it by a fixed PATH.
#
# A PATH that somebody chose for the shell comes first. `su -`, sshd and cron start shells with system directories only, or
# without PATH; then the sandbox's PATH comes first.
_alcove_given=
if [ ! -r "/proc/$$/environ" ]; then
  :
elif [ -n "${BASH_VERSION-}" ]; then
  while IFS= read -r -d '' _alcove_entry; do
    case $_alcove_entry in PATH=*) _alcove_given=${_alcove_entry#PATH=} ;; esac
  done <"/proc/$$/environ"
else
  _alcove_given=$(tr '\0' '\n' <"/proc/$$/environ" 2>/dev/null | sed -n 's/^PATH=//p' 2>/dev/null)
fi
_alcove_rest=$_alcove_given:
_alcove_chosen=
while [ -n "$_alcove_rest" ]; do
  _alcove_entry=${_alcove_rest%%:*}
  _alcove_rest=${_alcove_rest#*:}
  case $_alcove_entry in
  '' | . | /bin | /sbin | /usr/bin | /usr/sbin | /usr/local/bin | /usr/local/sbin | /usr/games | /usr/local/games | /snap/bin) ;;
  *) _alcove_chosen=yes ;;
  esac
done
if [ -n "$_alcove_chosen" ]; then
  _alcove_rest=$_alcove_given:$_alcove_own:$PATH:
else
  _alcove_rest=$_alcove_own:$_alcove_given:$PATH:
fi
PATH=
while [ -n "$_alcove_rest" ]; do
  _alcove_entry=${_alcove_rest%%:*}
  _alcove_rest=${_alcove_rest#*:}
  case :$PATH: in
  *":$_alcove_entry:"*) ;;
  *) [ -z "$_alcove_entry" ] || PATH=${PATH:+$PATH:}$_alcove_entry ;;
  esac
done
export PATH
unset _alcove_given _alcove_entry _alcove_rest _alcove_own _alcove_chosen
