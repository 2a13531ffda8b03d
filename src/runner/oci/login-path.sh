# Login shells keep the PATH that they were started with, before whatever /etc/profile says. /etc/profile puts a fixed PATH
# in its place, so that what the image or the sandbox adds to it would be lost.
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
if [ -n "$_alcove_given" ]; then
  _alcove_rest=$PATH:
  PATH=$_alcove_given
  while [ -n "$_alcove_rest" ]; do
    _alcove_entry=${_alcove_rest%%:*}
    _alcove_rest=${_alcove_rest#*:}
    case ::$PATH: in *":$_alcove_entry:"*) ;; *) PATH=$PATH:$_alcove_entry ;; esac
  done
  export PATH
fi
unset _alcove_given _alcove_entry _alcove_rest
