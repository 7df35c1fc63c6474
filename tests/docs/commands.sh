# Prepended to the commands of a page. `python -m runner` keeps its records in this folder and tracks only where the
# page says so; where a key is needed, the command is only planned, or composed if it is a job that has no plan.
set -euo pipefail
trap 'echo "line $LINENO failed: $BASH_COMMAND" >&2' ERR

python() {
  case " $* " in
    *" -m runner "*" --help"* | *" --cfg "* | *" -m pytest "*) command python "$@"; return ;;
    *" -m runner "*) ;;
    *) command python "$@"; return ;;
  esac
  local words=()
  [[ " $* " == *" outputs="* ]] || words+=("outputs=$PWD/outputs")
  [[ " $* " == *" tracker="* ]] || words+=("tracker=${TRACKER:-none}")
  [[ " $* " != *"experiment=quickstart"* || " $* " == *"dry_run="* ]] || words+=("dataset.include=[logs-to-csv,git-archaeology]")
  if [ -n "${NEEDS_KEY:-}" ] && [[ " $* " != *" dry_run="* ]]; then
    if [[ " $* " == *" job="* && " $* " != *" job=environment "* ]]; then words+=(--cfg job); else words+=(dry_run=true); fi
  fi
  command python "$@" "${words[@]}"
}
