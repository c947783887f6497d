import {
  actionOf,
  type CommandGroup,
  type DefinedCommand,
  defineCommand,
  listed,
  options,
} from "../setup/define-command.ts";

const shells = { bash, zsh, fish };

export function completionCommand(groups: readonly CommandGroup[]): DefinedCommand {
  return defineCommand({
    name: "completion",
    actions: shells,
    usage,
    flags: {},
    run: async (_values, [given], { print }) => {
      const shell = actionOf(shells, given);
      print(shells[shell](await allWords(groups)));
      return 0;
    },
  });
}

const usage = `Usage: keelson completion bash|zsh|fish

Prints a script that completes commands, their actions and their options. Load it in the shell's start file:

${listed({
  bash: 'eval "$(npx keelson completion bash)" in ~/.bashrc',
  zsh: 'eval "$(npx keelson completion zsh)" in ~/.zshrc, after compinit',
  fish: "npx keelson completion fish | source in ~/.config/fish/config.fish",
})}

${options({})}

Exit codes: 0 printed, 2 wrong usage.`;

interface CommandWords {
  readonly name: string;
  readonly summary: string;
  readonly actions: readonly string[];
  readonly options: readonly string[];
}

async function allWords(groups: readonly CommandGroup[]): Promise<CommandWords[]> {
  const entries = groups.flatMap(({ commands }) => Object.entries(commands));
  return Promise.all(
    entries.map(async ([name, [summary, load]]) => {
      const { actionNames, optionNames } = (await load()).command;
      const options = optionNames.map((option) => `--${option}`);
      return { name, summary, actions: actionNames, options };
    }),
  );
}

/** If it offers no words, bash completes files, because most arguments are modules. */
function bash(words: readonly CommandWords[]): string {
  const cases = words.map(
    ({ name, actions, options }) =>
      `    ${name}) actions="${actions.join(" ")}"; options="${options.join(" ")}" ;;`,
  );
  return `_keelson() {
  local word="\${COMP_WORDS[COMP_CWORD]}" actions="" options=""
  COMPREPLY=()
  if [ "$COMP_CWORD" -eq 1 ]; then
    COMPREPLY=($(compgen -W "help --help --version ${namesOf(words)}" -- "$word"))
    return
  fi
  case "\${COMP_WORDS[1]}" in
    help) [ "$COMP_CWORD" -eq 2 ] && actions="${namesOf(words)}" ;;
${cases.join("\n")}
  esac
  if [[ "$word" == -* ]]; then COMPREPLY=($(compgen -W "$options" -- "$word"))
  elif [ "$COMP_CWORD" -eq 2 ] && [ -n "$actions" ]; then COMPREPLY=($(compgen -W "$actions" -- "$word"))
  fi
}
complete -o bashdefault -o default -F _keelson keelson`;
}

function zsh(words: readonly CommandWords[]): string {
  const described = words.map(
    ({ name, summary }) => `    '${name}:${quoted(summary.replaceAll(":", "\\:"))}'`,
  );
  const cases = words.map(
    ({ name, actions, options }) =>
      `    ${name}) actions=(${actions.join(" ")}); options=(${options.join(" ")}) ;;`,
  );
  return `_keelson() {
  local -a names actions options
  names=(
${described.join("\n")}
    'help:prints the help of a command'
  )
  if (( CURRENT == 2 )); then
    if [[ "\${words[2]}" == -* ]]; then compadd -- --help --version
    else _describe command names
    fi
    return
  fi
  case "\${words[2]}" in
    help) actions=(${namesOf(words)}) ;;
${cases.join("\n")}
  esac
  if [[ "\${words[CURRENT]}" == -* ]]; then compadd -- $options
  elif (( CURRENT == 3 && $#actions )); then compadd -- $actions
  else _files
  fi
}
compdef _keelson keelson`;
}

/** Conditions count words, because an argument may have the name of a command. */
function fish(words: readonly CommandWords[]): string {
  const first = "complete -c keelson -n '__keelson_at 1'";
  const lines = words.flatMap(({ name, summary, actions, options }) => [
    `${first} -f -a ${name} -d '${quoted(summary)}'`,
    ...(actions.length === 0
      ? []
      : [`complete -c keelson -n '__keelson_at 2 ${name}' -f -a '${actions.join(" ")}'`]),
    ...options.map(
      (option) => `complete -c keelson -n '__keelson_in ${name}' -l ${option.slice(2)}`,
    ),
  ]);
  return [
    `# Whether $argv[1] words precede the one to complete, of which the second is $argv[2].
function __keelson_at
  set -l words (commandline -opc | string match --invert --regex '^\\w+=')
  test (count $words) -eq $argv[1]; and test "$words[2]" = "$argv[2]"
end
function __keelson_in
  set -l words (commandline -opc | string match --invert --regex '^\\w+=')
  test "$words[2]" = "$argv[1]"
end`,
    `${first} -f -l help`,
    `${first} -f -l version`,
    `${first} -f -a help -d 'prints the help of a command'`,
    `complete -c keelson -n '__keelson_at 2 help' -f -a '${namesOf(words)}'`,
    ...lines,
  ].join("\n");
}

function namesOf(words: readonly CommandWords[]): string {
  return words.map(({ name }) => name).join(" ");
}

/** For single quotes in zsh and fish. */
function quoted(text: string): string {
  return text.replaceAll("'", "'\\''");
}
