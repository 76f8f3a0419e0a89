/** `molecule completion`: prints the script with which a shell calls `molecule complete` at a Tab. */
import { Argument } from 'commander'
import type { DefineCommand } from '../../command-context.ts'
import { programAnywhere } from '../../terminal/own-command.ts'

const SHELLS = ['bash', 'zsh', 'fish'] as const

/**
 * Our own script: the library's needs the package bash-completion and passes the typed words to `eval`. It asks the
 * command that was typed, so that it completes `molecule` and the path of `bin/molecule` alike: bash looks for the
 * completion of a path under its last part. A last line `:0` asks for files, `:16` for folders. Bash splits words at `=` and
 * `:` and replaces only the part behind them. So the parts of a word are joined again, and its first parts are taken off the
 * offers.
 */
const BASH_SCRIPT = `_molecule() {
  local word files= words=() rest="\${COMP_LINE#*"\${COMP_WORDS[0]}"}" part="\${COMP_WORDS[COMP_CWORD]}"
  for word in "\${COMP_WORDS[@]:1:COMP_CWORD}"; do
    if [[ -z $rest || $rest == [[:space:]]* ]]; then words+=("$word"); else words[\${#words[@]}-1]+=$word; fi
    rest="\${rest#*"$word"}"
  done
  [[ $part == [=:]* ]] && part=
  local last="\${words[\${#words[@]}-1]}"
  local before="\${last%"$part"}"
  COMPREPLY=()
  while IFS=$'\\t' read -r word _; do
    case $word in
      :0) files=-f ;;
      :16) files=-d ;;
      :*) ;;
      *) COMPREPLY+=("\${word#"$before"}") ;;
    esac
  done < <("\${COMP_WORDS[0]/#\\~/$HOME}" complete -- "\${words[@]}" 2>/dev/null)
  [[ \${COMPREPLY[0]} == *[=.] ]] && compopt -o nospace 2>/dev/null
  [[ -n $files ]] || return 0
  compopt -o filenames 2>/dev/null
  while IFS= read -r word; do COMPREPLY+=("$word"); done < <(compgen $files -- "\${part/#\\~/$HOME}")
}
complete -F _molecule molecule a2a
`

export const define: DefineCommand = (command, _openContext, terminal) => {
  const program = programAnywhere(terminal.env)
  command
    .addArgument(new Argument('<shell>').choices(SHELLS))
    .addHelpText('after', `\nFor bash: eval "$(${program} completion bash)"; add the line to ~/.bashrc to keep it.`)
    .action(async (shell: (typeof SHELLS)[number]) => {
      if (shell === 'bash') return terminal.out(BASH_SCRIPT)
      const { script } = await import('@bomb.sh/tab')
      script(shell, 'molecule', program)
      script(shell, 'a2a', programAnywhere(terminal.env, 'a2a'))
    })
}
