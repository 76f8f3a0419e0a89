/**
 * Every numbered behaviour of Molecule, as data. Tests cite ids in their titles. `requirements.test.ts` fails when no
 * test cites a built requirement, and when a test cites an unknown or a pending one. A pending requirement that is
 * cited has been built: change it to `built`.
 */

export interface Requirement {
  readonly id: string
  readonly built: boolean
  /** At most twelve words. The tests that cite the id have the exact values. */
  readonly text: string
  /** Which part is built, when not all of it is. */
  readonly part?: string
}

export const requirements: readonly Requirement[] = [
  // Backend contract
  built('BK-1', 'the backend gets every field of a request and its raw envelope'),
  built('BK-2', 'parts of all dialects are read and answered in the same dialect'),
  built('BK-3', 'a response has parts and a final flag; textResponse creates one'),
  built('BK-4', 'backends accept concurrent calls, obey cancel and close once'),
  built('BK-5', 'options are strings; empty means unset; a missing option is named'),
  built('BK-6', 'the registry refuses bad names and lists the known names sorted'),
  built('BK-7', 'short agent names resolve; an unknown name lists the valid names'),
  built('BK-8', 'validate explains what is wrong with a CLI and prevents the start'),
  built('BK-9', 'every backend passes one contract suite'),
  built(
    'BK-10',
    'a request names its authenticated sender and its door',
    'in the request and the story; not yet in the prompt and the activity',
  ),

  // exec
  built('EX-1', 'cmd is required and runs in the shell, as in a terminal'),
  built('EX-2', 'stdin gets the joined text, or the request as one JSON line'),
  built('EX-3', 'after exit 0 stdout is the reply, byte for byte, even empty'),
  built('EX-4', 'timeout has Go syntax and kills the whole process tree'),
  built('EX-5', 'any other exit code is an error with the end of stderr'),
  built('EX-6', 'pass_meta puts the ids of the message into the environment'),
  built('EX-7', 'message text is never part of a command line'),
  built('EX-8', 'cancelling kills the subprocess at once'),

  // Agent backends
  built('AG-1', 'claude-code, warm or one-shot, with its options'),
  built('AG-2', 'codex with resume, working folder and model'),
  built('AG-3', 'gemini with resume, model and approval mode'),
  built('AG-4', 'opencode with sessions and provider models'),
  built('AG-5', 'hermes, warm or one-shot, with its own sessions'),
  built('AG-6', 'openclaw, through its gateway or one-shot, with its own sessions'),
  built('AG-7', 'acp: any ACP agent as one warm process with many sessions'),
  built('AG-8', 'stdio: one long-running subprocess, one line in, one line out'),
  built('AG-9', 'openai: any compatible endpoint, streamed, with history'),
  built('AG-10', 'mcp: a message becomes a call of one tool'),
  built('AG-11', 'a2a: relays to a remote agent without losing anything'),
  built('AG-12', 'mock: reply, delay, stream, failure and usage by option'),
  built('AG-13', 'properties of flags and parsers hold for generated cases'),
  built('AG-14', 'npm run test:agents runs real agent CLIs against a fake model'),
  built('AG-15', 'an option that a backend cannot honour causes a warning'),
  built('AG-16', 'permission modes ask, allowed_tools and bypass'),
  built('AG-17', 'credentials come by file or variable name and are never shown'),
  built('AG-18', 'the order of model settings, and what happens to model prefixes'),
  built('AG-19', 'one table says how each failure of each CLI is treated'),

  // Inbox
  built('IN-1', 'the same message again attaches; other content under a key conflicts'),
  built('IN-2', 'a conversation runs one turn at a time, in order'),
  built('IN-3', 'leases are fenced; late results are kept but never delivered twice'),
  built('IN-4', 'attempts are counted across restarts and end in dead letters'),
  built('IN-5', 'cursors follow the order of commits'),
  built('IN-6', 'retention never deletes unsettled messages'),
  built('IN-7', 'expiry, blocking limits and reasons for waiting are visible'),
  built('IN-8', 'cancel works in every state'),
  built('IN-9', 'a turn that waits gives up its slot'),
  built('IN-10', 'events repeat safely, reset on retry and resume in streams'),

  // Connect
  built('CN-1', 'connect registers, takes messages, runs them and answers'),
  built(
    'CN-2',
    'the caller receives the answer and its progress',
    'over A2A, the command line and webhooks; there is no canvas or Discord yet',
  ),
  built('CN-3', 'a failing backend does not stop the bridge'),
  built('CN-4', 'a computed reply is sent again, not computed again'),
  built('CN-5', 'the bridge reconnects with backoff and says what it waits for'),
  built('CN-6', 'SIGTERM drains; a second SIGTERM ends at once'),
  built('CN-7', 'two bridges share the work and answer each message once'),
  built(
    'CN-8',
    'an idle bridge starts a message within 15 ms',
    'before the sender has its answer; bench/connect measures the time',
  ),
  built('CN-9', 'time asleep does not count against a turn'),

  // Platform
  built('PL-1', 'up runs everything in one process, with token and login link'),
  built('PL-2', 'workspaces are created and managed over HTTP', 'all except uploads that are merged into the request'),
  built('PL-3', 'errors in config.yaml name the file and the line'),
  built('PL-4', 'register, heartbeat, discover, peers and presence'),
  built('PL-5', 'all of A2A, both versions, over JSON-RPC, REST and gRPC'),
  built('PL-6', 'the activity of a workspace can be read and added to'),
  built('PL-7', 'numbered events over WebSocket and SSE without gaps'),
  built(
    'PL-8',
    'rules say who may talk to whom; a denial gives its reason',
    'for A2A, peers and tasks; delegation and memory are pending',
  ),
  built('PL-9', 'body size, rate and queue length have limits'),
  built('PL-10', 'OpenAPI document, health, readiness and metrics'),
  built('PL-11', 'the working folder must exist, and only an admin changes it'),
  built('PL-12', 'tokens have names and roles and can be rotated and revoked'),
  built('PL-13', 'one process per data folder; a taken port names its process'),
  built('PL-14', 'public URL, trusted proxy and keep-alive of streams', 'all but a test with nginx itself'),
  built('PL-15', 'one error format, request ids and a version'),
  pending('PL-16', 'an append-only audit log'),
  built('PL-17', 'files and artifacts are uploaded and downloaded safely'),
  built('PL-18', 'tier 1 runs in a sandbox or fails', 'it is refused, as there is no sandbox yet'),
  built('PL-19', 'each webhook is signed with its own secret'),
  pending('PL-20', 'people are named users who log in by OIDC or link'),
  pending('PL-21', 'TLS uses two files and reloads them when they change'),
  pending('PL-22', 'agents run as another user, within memory and CPU limits'),
  built(
    'PL-23',
    'pages have a byte limit and never block the event loop',
    'all but one bound: an 8 MiB message holds the loop for as long as SQLite writes it',
  ),
  built('PL-24', 'always-allow rules are listed, revoked and audited'),
  pending('PL-25', 'isolation is none, sandbox or container, and never less than set'),
  pending('PL-26', 'an isolated agent sees only its folder and its home'),
  pending('PL-27', 'an isolated agent reaches the platform and the provider relay only'),
  pending('PL-28', 'a turn has limits of memory, processes and CPU'),
  pending('PL-29', 'web push tells a person what needs them'),
  built('PL-30', 'names from outside are bounded and shown without control characters'),
  built('PL-31', 'bodies are counted before and while they are read'),
  built('PL-32', 'metrics pass promtool and have histograms', 'without histograms'),
  pending('PL-33', 'traces travel through every door and can be exported'),

  // Runtime
  built('RT-1', 'the system prompt has defined parts and is sent at defined times'),
  built('RT-2', 'memories are recalled on the first turn only'),
  built('RT-3', "backends without sessions get history; the platform's wins over the client's"),
  built('RT-4', 'the current task is visible during a turn and cleared after it'),
  built('RT-5', 'sessions survive restarts; a lost session is replaced once'),
  built('RT-6', 'one table says which failures are retried, how often and when'),
  built('RT-7', 'people see one clean sentence; the log has everything'),
  built('RT-8', 'hooks run before a turn, after it and on error'),
  built('RT-9', "a backend's token has defined sources and reaches only its agent"),
  built('RT-10', 'adapters in the data folder become backends'),
  built('RT-11', 'a retried turn tells the agent that it is a retry'),
  built('RT-12', 'child processes get defined variables and no others of the platform'),
  built('RT-13', 'tokens, cost and time are counted per turn, with an hourly limit'),
  built(
    'RT-14',
    'a rate limit without an end time parks the message and retries',
    'everywhere but in the canvas, which does not exist yet',
  ),
  built('RT-15', 'a new session after a lost one gets the stored conversation'),
  pending('RT-16', 'tool output, diffs and changed files are events of a turn'),
  built('RT-17', 'exec and stdio agents get prompt, history and files too'),
  built('RT-18', 'options are chosen by the probed version of a CLI'),

  // Teamwork
  built('TW-1', 'each workspace has an MCP server with the teamwork tools'),
  built('TW-2', 'the a2a command serves agents without MCP'),
  built('TW-3', 'a delegation is durable and is fetched and cancelled by id'),
  built('TW-4', 'a failed delegation offers the agent three ways to continue'),
  built(
    'TW-5',
    'delegation depth has a limit, and circles are refused',
    'among relays, and from the token of a conversation',
  ),
  built('TW-6', 'delegating again is a new task; retrying the call is not'),
  built('TW-7', 'memories are stored, searched, summarised and forgotten'),
  built('TW-8', 'the status text appears on the card at once'),
  built('TW-9', 'one root message has limits and one stop for all its work'),
  built('TW-10', 'a workspace and a root message have budgets'),
  built('TW-11', 'apply makes a team equal to a file; export writes the file', 'all except rules'),

  // Gateway
  built('GW-1', 'a Discord bot is set up by environment variables alone'),
  built('GW-2', 'a channel keeps order, shows progress, splits long texts, carries files'),
  built('GW-3', 'results become replies and stored sessions'),
  built('GW-4', 'strangers must pair first; bots do not answer each other'),
  built('GW-5', 'messages that arrive during downtime are answered once'),
  built('GW-6', 'a reply is delivered once'),
  built('GW-7', 'slash commands'),
  built('GW-8', 'timeout, parse and exit failures have their own sentences'),
  built('GW-9', 'permissions and questions are one durable list'),
  built('GW-10', 'channels share one implementation; a single channel stays small'),
  built('GW-11', 'Telegram is a second channel on the shared chat door'),
  built('GW-12', 'commands add, bind and remove channels'),
  built('GW-13', 'a limit is no failed try; no chat waits for another'),
  built('GW-14', 'prompts and pairing codes are durable deliveries, shown where owners answer'),
  built('GW-15', 'answers stream as edits and end exact'),
  built('GW-16', 'the prompt names the speaker and carries quotes'),
  built('GW-17', 'an agent reaches a person in their home chat'),
  built('GW-18', 'Slack and Matrix are channels on the same seam'),

  // Canvas
  built('CV-1', 'each workspace has a live card'),
  built('CV-2', 'chat with streaming, history, files and states'),
  built('CV-3', 'workspaces are created, connected, arranged and edited'),
  built('CV-4', 'activity, delegations, memory, dead letters, usage and access are visible'),
  built('CV-5', 'works with keyboard, phone, dark mode, many cards and restarts', 'all except measured smoothness'),
  built('CV-6', 'one drawer lists everything that needs a person'),
  pending('CV-7', 'a working card opens its live work'),
  built(
    'CV-8',
    'the chat can be resized, quoted, branched and exported',
    'line breaks, lists, tables and partial answers',
  ),
  built('CV-9', 'needs you stands beside the chat with cause and keys', 'the composer answers a question'),
  built(
    'CV-10',
    'the list sorts, groups and acts on many workspaces',
    'places of cards and Resume all; not yet the table, its bulk actions, the minimap and folded teams',
  ),
  built('CV-11', 'search finds every stored message and opens it', 'messages and answers'),
  built('CV-12', 'settings are pages and lose no change', 'no change is lost; the settings are still one tab'),
  pending('CV-13', 'the first run offers agents, a key and example teams'),
  built('CV-14', 'one failing message, panel or address never blanks the page'),
  pending('CV-15', 'each conversation can have its own git worktree'),

  // Command line
  built('CL-1', 'every command authenticates and uses existing routes', 'without audit, backup and restore'),
  built('CL-2', 'progress, errors with advice, and fast help'),
  built('CL-3', 'doctor checks agents, store, ports and tokens'),
  built('CL-4', 'login links, sessions and profiles', 'links and sessions on one machine; no profiles and no QR code'),
  built('CL-5', 'chat in the terminal'),
  built('CL-6', 'slash commands, pasted lines and files in terminal chat'),
  built('CL-7', 'status is an overview, tasks have commands, names are accepted'),
  built('CL-8', 'set, rename, usage, down, token and discard commands'),

  // Schedules
  built('SC-1', 'messages run on a schedule, never two at once'),

  // Reliability
  built(
    'RE-1',
    'a kill at any moment loses nothing and repeats nothing',
    'npm test kills at chosen points; test:crash kills 200 times at random',
  ),
  pending('RE-2', 'two nodes share a database and survive the death of one'),
  built(
    'RE-3',
    'recovers from a lost database, a full disk and slow clients',
    'npm test takes the database away for 6 s, not for 30 s',
  ),
  built('RE-4', 'bad input is refused with a reason'),
  built(
    'RE-5',
    'no orphan or zombie process is left behind',
    'where no cgroup can be made, one that drops its mark and its session survives',
  ),
  built('RE-6', 'safe upgrades, backup and restore', 'upgrades; the commands backup and restore are pending'),
  built('RE-7', 'nothing grows without a limit'),
  pending('RE-8', 'some workspaces belong to a node, others may move'),
  built('RE-9', 'every attack that ever worked is a test', 'attacks in test/hostile so far'),
  built('RE-10', 'readiness proves a durable write; a corrupt store is refused'),
  built('RE-11', 'npm test always ends and names a test that hangs'),
  built('RE-12', 'npm test passes on a bare machine'),
  built(
    'RE-13',
    'no outside text holds the event loop; parsers are linear',
    'all but one bound: SQLite commits 8 MiB in more than 50 ms',
  ),
  pending('RE-14', 'a power loss loses no acknowledged message'),
  pending('RE-15', 'kills of nodes lose nothing; streams work at any node'),
  built('RE-16', 'a million messages cost little more than ten thousand', 'cost; not the size of the WAL'),

  // Packaging
  pending('PK-1', 'npm pack gives a small package that runs by npx'),
  pending('PK-2', 'a container image and a compose file'),
  pending('PK-3', 'the platform can be installed as a service'),
  pending('PK-4', 'update rehearses on a copy and can go back'),
  pending('PK-5', 'change log, versions and a release workflow'),
  pending('PK-6', 'report writes a masked bundle for bug reports'),
]

function built(id: string, text: string, part?: string): Requirement {
  return { id, built: true, text, ...(part === undefined ? {} : { part }) }
}

function pending(id: string, text: string): Requirement {
  return { id, built: false, text }
}
