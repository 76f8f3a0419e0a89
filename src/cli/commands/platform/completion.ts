/** `molecule completion`: prints the script with which a shell calls `molecule complete` at a Tab. */
import { Argument } from 'commander'
import type { DefineCommand } from '../../command-context.ts'
import { programAnywhere } from '../../terminal/own-command.ts'

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

/**
 * Our own scripts for zsh and fish too: those of the library complete no `runtime=`, and offer files where folders are
 * meant. What is typed before the last `=` stays, and the offers stand behind it.
 */
const ZSH_SCRIPT = `_molecule() {
  local word text files=
  local -a whole open
  while IFS=$'\\t' read -r word text; do
    case $word in
      :0) files=_files ;;
      :16) files='_files -/' ;;
      :*) ;;
      *[=.]) open+=("\${word//:/\\\\:}\${text:+:$text}") ;;
      *) whole+=("\${word//:/\\\\:}\${text:+:$text}") ;;
    esac
  done < <("\${words[1]/#\\~/$HOME}" complete -- "\${(@Q)words[2,CURRENT]}" 2>/dev/null)
  compset -P '*='
  (( $#whole )) && _describe 'molecule' whole
  (( $#open )) && _describe 'molecule' open -S ''
  [[ -n $files ]] && \${=files}
  return 0
}
(( $+functions[compdef] )) || { autoload -Uz compinit; compinit -i }
compdef _molecule molecule a2a
`

const FISH_SCRIPT = `function __molecule_complete
    set -l words (commandline -opc)
    set -l typed (commandline -ct)
    set -l before (string match -r '^.*=' -- $typed)
    set -l program (string replace -r '^~' $HOME -- $words[1])
    for line in ($program complete -- $words[2..-1] "$typed" 2>/dev/null)
        switch $line
            case ':0'
                __fish_complete_path (string replace -r '^.*=' '' -- $typed) | string replace -r '^' -- "$before"
            case ':16'
                __fish_complete_directories (string replace -r '^.*=' '' -- $typed) | string replace -r '^' -- "$before"
            case ':*'
            case '*'
                echo "$before$line"
        end
    end
end
complete -c molecule -f -a '(__molecule_complete)'
complete -c a2a -f -a '(__molecule_complete)'
`

const SCRIPTS = { bash: BASH_SCRIPT, zsh: ZSH_SCRIPT, fish: FISH_SCRIPT } as const

const helpOf = (program: string): string => `
Add the line of your shell to its file to keep it:
  bash  ~/.bashrc                   eval "$(${program} completion bash)"
  zsh   ~/.zshrc                    eval "$(${program} completion zsh)"
  fish  ~/.config/fish/config.fish  ${program} completion fish | source`

export const define: DefineCommand = (command, _openContext, terminal) => {
  const program = programAnywhere(terminal.env)
  command
    .addArgument(new Argument('<shell>').choices(Object.keys(SCRIPTS)))
    .addHelpText('after', helpOf(program))
    .action((shell: keyof typeof SCRIPTS) => terminal.out(SCRIPTS[shell]))
}
