/**
 * Every numbered behaviour of Molecule, as data. Tests cite an id in their title; `requirements.test.ts` fails when a
 * built one is cited by no test, when a test cites an id that is not here, and when it cites one that is pending:
 * then the behaviour has been built, and its line moves to `built`.
 */

export interface Requirement {
  readonly id: string
  readonly built: boolean
  /** What it is about, in a few words; the exact values are in the tests that cite it. */
  readonly text: string
  /** For one that is built in part: which part. */
  readonly part?: string
}

export const requirements: readonly Requirement[] = [
  // Backend contract
  built('BK-1', 'a request reaches the backend with every field and its raw envelope'),
  built('BK-2', 'parts of all dialects are read and answered in the one used'),
  built('BK-3', 'a response has a part and a final flag; textResponse makes one'),
  built('BK-4', 'backends take concurrent calls, obey cancel, close once'),
  built('BK-5', 'options are strings; empty is unset, a missing one is named'),
  built('BK-6', 'the registry refuses bad names and lists the known ones sorted'),
  built('BK-7', 'short names of agents resolve, unknown ones list the valid'),
  built(
    'BK-8',
    'validate says what is wrong with a CLI and stops the start',
    'under up, where the workspace alone is failed, and under connect',
  ),
  built('BK-9', 'one contract suite that every backend passes'),
  built('BK-10', 'a request names its authenticated sender and the door it used'),

  // exec
  built('EX-1', 'cmd is required and run by the shell, as in a terminal'),
  built('EX-2', 'stdin gets the joined text, or the request as one JSON line'),
  built('EX-3', 'after exit 0 stdout is the reply, byte for byte, even empty'),
  built('EX-4', 'timeout in Go syntax; when it is over the whole tree dies'),
  built('EX-5', 'another exit code is an error with the end of stderr'),
  built('EX-6', 'pass_meta puts the ids of the message into the environment'),
  built('EX-7', 'text of a message is never part of a command line'),
  built('EX-8', 'cancelling kills the subprocess at once'),

  // Agent backends
  built('AG-1', 'claude-code, warm or one-shot, with its options'),
  built('AG-2', 'codex with resume, folder and model'),
  built('AG-3', 'gemini with resume, model and approval mode'),
  built('AG-4', 'opencode with sessions and provider models'),
  built('AG-5', 'hermes, one-shot with its own sessions'),
  built('AG-6', 'openclaw, one-shot with its own sessions'),
  built('AG-7', 'acp: any such agent as one warm process with many sessions'),
  built('AG-8', 'stdio: one lasting subprocess, a line in, a line out'),
  built('AG-9', 'openai: any compatible endpoint, streamed, with history'),
  built('AG-10', 'mcp: a message becomes a call of one tool'),
  built('AG-11', 'a2a: relays to a remote agent and loses nothing'),
  built('AG-12', 'mock: reply, delay, stream, fail and usage to order'),
  built('AG-13', 'properties of flags and parsers hold for generated cases'),
  built('AG-14', 'real agent CLIs run in the suite against a fake model'),
  built('AG-15', 'an option that a backend cannot honour is warned of'),
  built('AG-16', 'permission modes ask, allowed_tools and bypass'),
  built('AG-17', 'credentials by file or variable name, never shown again'),
  built('AG-18', 'which model setting wins, and what becomes of its prefix'),
  pending('AG-19', 'one table says how each failure of each CLI is treated'),

  // Inbox
  built('IN-1', 'the same message again attaches, other content conflicts'),
  built('IN-2', 'one turn at a time in a conversation, in order'),
  built('IN-3', 'leases are fenced, late results kept but not doubled'),
  built('IN-4', 'attempts count for life and end in dead letters'),
  built('IN-5', 'cursors follow the order of commits'),
  built('IN-6', 'retention leaves unsettled mail alone'),
  built('IN-7', 'expiry, limits of blocking and reasons for waiting show'),
  built('IN-8', 'cancel in every state'),
  built('IN-9', 'a waiting turn gives up its slot'),
  built('IN-10', 'events repeat safely, reset on retry, resume in streams'),

  // Connect
  built('CN-1', 'connect registers, takes messages, runs them, answers'),
  built('CN-2', 'the answer and its progress reach whoever asked'),
  built('CN-3', 'a failing backend does not stop the loop'),
  built('CN-4', 'a computed reply is posted again, not computed again'),
  built('CN-5', 'reconnects with backoff and says what it waits for'),
  built('CN-6', 'SIGTERM drains, a second one ends at once'),
  built('CN-7', 'two bridges share the work and answer once'),
  built('CN-8', 'an idle bridge starts on a message within 15 ms'),
  built('CN-9', 'time asleep does not count against a turn'),

  // Platform
  built('PL-1', 'up runs everything in one process, with token and login link'),
  built('PL-2', 'workspaces are made and managed over HTTP'),
  built('PL-3', 'config.yaml, whose errors name file and line'),
  built('PL-4', 'register, heartbeat, discover, peers and presence'),
  built('PL-5', 'all of A2A, both versions and bindings, on one URL'),
  built('PL-6', 'activity of a workspace, read and reported'),
  built('PL-7', 'numbered events over WebSocket and SSE without gaps'),
  built('PL-8', 'who may talk to whom, and a denial that says why'),
  built('PL-9', 'limits of body, rate and queue'),
  built('PL-10', 'OpenAPI document, health, readiness, metrics'),
  built('PL-11', 'a working folder that exists and only admin changes'),
  built('PL-12', 'tokens with names and roles, rotated and revoked'),
  built('PL-13', 'one process per data folder, and who holds the port'),
  pending('PL-14', 'public URL, trusted proxy, keep-alive of streams'),
  built('PL-15', 'one shape of errors, request ids, version'),
  pending('PL-16', 'an audit that can only grow'),
  built('PL-17', 'files and artifacts in and out, safely'),
  pending('PL-18', 'tier 1 is sandboxed or fails'),
  pending('PL-19', 'webhooks are signed with a secret of their own'),
  pending('PL-20', 'people are named users, by OIDC or login link'),
  pending('PL-21', 'TLS from two files, reloaded when they change'),
  pending('PL-22', 'agents run as another user, within memory and CPU limits'),
  pending('PL-23', 'pages are bounded by bytes and never block the event loop'),
  pending('PL-24', 'always-allow rules are listed, revoked and audited'),

  // Runtime
  pending('RT-1', 'what the system prompt is made of and when it is sent'),
  pending('RT-2', 'memories are recalled on the first turn only'),
  built('RT-3', 'history for backends without sessions, ours before what clients claim'),
  built('RT-4', 'the current task shows during a turn and clears after'),
  built('RT-5', 'sessions survive restarts; a lost one is replaced once'),
  built('RT-6', 'what is retried, how often, after how long'),
  built('RT-7', 'people see one clean sentence, the log everything'),
  pending('RT-8', 'hooks before, after and on error of a turn'),
  built('RT-9', 'where the token of a backend comes from, who gets it'),
  built('RT-10', 'adapters found in the data folder'),
  built('RT-11', 'a re-run tells the agent that it is one'),
  built('RT-12', 'what children find in their environment and what not'),
  built('RT-13', 'tokens, cost and time per turn, and a limit an hour', 'all but delegation trees'),
  pending('RT-14', 'a rate limit without a time parks and is tried again'),
  pending('RT-15', 'a new session after a lost one gets the stored conversation'),

  // Teamwork
  pending('TW-1', 'an MCP server with the teamwork tools for each workspace'),
  built('TW-2', 'the a2a command for agents without MCP'),
  pending('TW-3', 'a delegation is durable, fetched and cancelled by id'),
  pending('TW-4', 'a failed delegation shows the agent three ways on'),
  built('TW-5', 'limits of depth, and no circles of waiting', 'among relays'),
  pending('TW-6', 'delegating again is new, retrying a call is not'),
  pending('TW-7', 'memory is kept, searched, summarised, forgotten'),
  built('TW-8', 'status text shows on the card at once'),
  pending('TW-9', 'limits of one root message, and a stop for all'),
  pending('TW-10', 'budgets of a workspace and of a root message'),
  pending('TW-11', 'apply makes a team equal to a file, export writes it'),

  // Gateway
  pending('GW-1', 'a Discord bot set up by environment alone'),
  pending('GW-2', 'order, progress, splitting and files in a channel'),
  pending('GW-3', 'how results map to replies and stored sessions'),
  pending('GW-4', 'strangers pair first, bots do not loop'),
  pending('GW-5', 'what came while it was down is answered once'),
  pending('GW-6', 'a reply is delivered once'),
  pending('GW-7', 'slash commands'),
  pending('GW-8', 'wording of time-out, parse and exit failures'),
  pending('GW-9', 'approvals and questions are one durable list'),
  pending('GW-10', 'what channels share lives once; a channel stays small'),
  pending('GW-11', 'Telegram is a second channel on the shared chat door'),
  pending('GW-12', 'channels are added, bound and removed by command'),

  // Canvas
  pending('CV-1', 'a live card for each workspace'),
  pending('CV-2', 'chat with streaming, history, files and states'),
  pending('CV-3', 'create, connect, arrange and edit workspaces'),
  pending('CV-4', 'activity, delegations, memory, dead letters, usage, access'),
  pending('CV-5', 'keyboard, phone, dark, many cards, restarts'),
  pending('CV-6', 'one drawer for what needs a person'),

  // Command line
  built('CL-1', 'all commands, authenticated, on routes that exist', 'without audit, backup and restore'),
  built('CL-2', 'progress, errors with advice, quick help'),
  built('CL-3', 'doctor looks at agents, store, ports and tokens'),
  pending('CL-4', 'login links, sessions and profiles'),
  built('CL-5', 'chat in the terminal'),
  pending('CL-6', 'slash commands, pasted lines and files in terminal chat'),
  pending('CL-7', 'status is an overview, tasks have commands, names are accepted'),

  // Schedules
  pending('SC-1', 'messages on a schedule, never two at once'),

  // Reliability
  built('RE-1', 'killed at any moment, nothing lost and nothing twice'),
  pending('RE-2', 'two nodes on one database, one dies'),
  built('RE-3', 'recovers from lost database, full disk, slow clients'),
  built('RE-4', 'bad input is refused with a reason'),
  built('RE-5', 'no orphan or zombie is left behind'),
  pending('RE-6', 'safe upgrades, backup and restore'),
  pending('RE-7', 'nothing grows without bound'),
  pending('RE-8', 'which workspaces belong to a node, and which float'),
  pending('RE-9', 'every attack that ever worked is a test'),
  pending('RE-10', 'readiness proves a durable write, a corrupt store is refused'),
  pending('RE-11', 'npm test always ends and names a hung test'),
]

function built(id: string, text: string, part?: string): Requirement {
  return { id, built: true, text, ...(part === undefined ? {} : { part }) }
}

function pending(id: string, text: string): Requirement {
  return { id, built: false, text }
}
