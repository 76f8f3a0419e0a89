/**
 * The changes of the source that no test can notice (`npm run test:mutate`), by rule. A rule matches the changed line, marked
 * as `«old → new»`. Write the missing test first; add a rule only for a kind of change that makes no difference to any caller.
 */
import type { AcceptedRule } from '../scripts/mutate/accepted.ts'

/** Kinds of changes, in any file. */
const KINDS: readonly AcceptedRule[] = [
  {
    reason:
      'A neutral default (an empty text, 0 or 1) stands for a value that is never absent, or that means the same.',
    edits: [
      /(?:\?\?|=== undefined \?|isBinary \?) (?:'« → ~»'|«0 → 1»|«1 → 0»)/,
      /(?<!\b(?:const|let) )\b\w+ = (?:'« → ~»'|«0 → 1»|«1 → 0»)(?= ?[,)}\]])/,
      /\?\? \{[^}]*«[01] → [01]»/,
    ],
  },
  {
    reason: 'The text of a message that every problem already has is never shown.',
    edits: [/(?:message:|message \?\?|= errorInfo\() ?'\w+« → ~»'/],
  },
  {
    reason:
      'A lock orders transactions of PostgreSQL only, whose tests this runner does not run; SQLite has one writer.',
    edits: [/«yield\* [^»]*lockWorkspace\(/, /for update/],
  },
  {
    reason: 'At exactly this millisecond both sides of the comparison of two times are right.',
    edits: [
      /«[<>]=? → [<>]=?» (?:now_ms\(\)|\$\d then)/,
      /«[^«»]*\b(?:now|nowMs|\w+AgoMs)\b[^«»]* → \(\([^»]*\) [<>]=? \(/,
    ],
  },
  {
    reason: 'Without rows the guarded step changes nothing; the guard only saves a statement.',
    edits: [/«[^«»]*\.length > 0 → \(\([^»]*\) >= \(0\)\)»/, /(?:waiting|parks) «> → >=» 0/],
  },
  {
    reason: 'One step more finds nothing: behind the last item there is none.',
    edits: [/for \(let [^;]*; «(\w+) < [\w.]+ → \(\(\1\) <= \(/],
  },
  {
    reason:
      'The bound of a cache or of one round of upkeep: what is dropped is computed again, what is left is found by the next round.',
    edits: [
      /\.size >= \w+_MAX\b.*\.clear\(\)/,
      /\b(?:PASSES|WAITS|CHILDREN|TREE_ROWS|BASE_BRIEFS|CACHED_FILES|ISSUED|TOUCHED)_MAX\b/,
      /\b(?:SLICE_[A-Z]+|WORKING_DIR_RECHECK_MS|TEAM_KNOWN_MS)\b/,
      /«(?:sseEvents|eventsMessages|checkedMs|known|issued)\.set\([^»]*\) → ;»/,
    ],
  },
  {
    reason: 'The keys of the sorted items are unique, and V8 asks only whether the result is below zero.',
    edits: [/\(a, b\) =>.*«[^«»]* < [^«»]* → \(\(/, /\(a, b\) =>.*\? «1 → 0»/],
  },
  {
    reason: 'All rows of the group have the same value, so the smallest is the largest.',
    edits: [/«min\( → max\(»[\w.]+\) as/],
  },
  {
    reason: 'The message with the number settled_n has settled, and settled messages are left out anyway.',
    edits: [/\bn «> → >=» .*settled_?n/i],
  },
  {
    reason: 'The place before all rows: no row has the first or the last possible time, so its id decides nothing.',
    edits: [/after === undefined \? \{ atMs: .*«/],
  },
  {
    reason: 'It only lets other work run in between; test/hostile measures how long the event loop is held.',
    edits: [/«await (?:letOthersRun|nextTurn)\([^»]*→ ;»/, /if \(at > .*await nextTurn/],
  },
  { reason: 'Only a power failure shows whether a file was flushed.', edits: [/flush: «true → false»/] },
  {
    reason: 'The check only saves work: what follows finds nothing to do, or refuses in the same way.',
    edits: [
      /if \((?:open\.size === 0|stopped\.signal\.aborted|waiting < free)\) «return → ;»/,
      /if \(!(?:\(await markWaitingTime\(store\)\)|state\.cursors\.has\(workspaceId\))\) «return → ;»/,
      /if \(waits === 0\) return «false → true»/,
      /if \(!isWorkspaceId\(id\)\) «throw /,
      /«secret\.length === 0 \|\| secret\.length > SECRET_CHARACTERS_MAX → /,
    ],
  },
  {
    reason: 'A promise settles once, and a closed connection is collected with its listeners.',
    edits: [
      /«(?:stop\(\)|request\.off\('close', fail\)|socket\.once\('close', done\)|this\.wakeUp\.wake\(\)) → ;»/,
      /socket\.once\('close« → ~»'/,
    ],
  },
]

/** Changes of one place, which no kind above covers. */
const PLACES: readonly AcceptedRule[] = [
  {
    below: 'src/doors/http/',
    reason: 'Only A2A shows the details of an error; those of other routes are in no answer and no log.',
    edits: [/details(?::| =) \{ path: '\w+« → ~»'/],
  },
  {
    below: 'src/workspaces/',
    reason: 'The routes of workspaces show the message of an error, which names the field, and not its details.',
    edits: [/details: \{ path: '\w+« → ~»'/],
  },
  {
    below: 'src/doors/http/',
    reason: 'An HTTP answer shows the code and Retry-After of this error, not whether it may be retried.',
    edits: [/'too_many_requests', message, \{ retryable: «true → false»/],
  },
  {
    below: 'src/doors/http/socket/reader.ts',
    reason: 'A change or a message since then has also woken the loop, so the wait that follows ends at once.',
    edits: [
      /sendPlatformChanges\(state\)\) «continue → ;»/,
      /if \(cursor === undefined\) return «true → false»/,
      /^return «true → false»/,
      /platformStale = «false → true»/,
    ],
  },
  {
    below: 'src/doors/http/socket/sockets.ts',
    reason: 'The library, the comparison before the read, or any method but GET and HEAD gives the same result.',
    edits: [/clientTracking: «/, /let again = «/, /method: 'UPGRADE« → ~»'/],
  },
  {
    below: 'src/doors/http/server/',
    reason: 'The changed number, count or text is rounded, ignored or compared with a longer name.',
    edits: [
      /STORE_RETRY_AFTER_MS = «/,
      /«left > 0 → /,
      /taskScope\(identity, '« → ~»'/,
      /if \(«?at > .*pair\.slice\(0, at\)/,
    ],
  },
  {
    below: 'src/doors/http/server/download.ts',
    reason: 'The name is safe before, and the loop sets its end before it reads it.',
    edits: [/replaceAll\(\/\["\\\\\]\/g, '_« → ~»'/, /let start = 0, end = «/],
  },
  {
    below: 'src/doors/http/',
    reason:
      'No answer shows it: a status of a refusal over gRPC, the task of a config that is dropped, how soon a slow client goes.',
    edits: [/status: «400 → 40».*versionNotSupported/, /read\('task« → ~»'\)\.url/, /connectionsCheckingInterval: .*«/],
  },
  {
    below: 'src/doors/http/a2a/streams.ts',
    reason: 'The rows of a log begin at 1, so the row 0 is not found in the log either way.',
    edits: [/Math\.max\(«1 → 0», firstSeq\)/],
  },
  {
    below: 'src/client/',
    reason: 'Node does the same: any address of the resolver may be used, and the agent of a connection chooses TLS.',
    edits: [/verbatim: «/, /const send = .*\? requestHttps : requestHttp/],
  },
  {
    below: 'src/inbox/rules/rule-pattern.ts',
    reason: 'What is not refused or chosen here is refused by the next check (choiceOf, a clean path).',
    edits: [/«other\.length < one\.length → /, /pattern === '\/« → ~»'/, /«isFolder\(shortest\) && /],
  },
  {
    below: 'src/inbox/',
    reason:
      'Both numbers give the same result: more than an amount, a buffer, a page or a correction of the clock can need.',
    edits: [/\b(?:SUM_DECIMALS|CHECKSUM_BYTES|HISTORY_MAX) = «/, /bytes_through «<= → <»/, /if \(backMs > «0 → 1»\)/],
  },
  {
    below: 'src/inbox/',
    reason: 'A later step does the same: the next sweep, the read under the lock, or the write of an equal value.',
    edits: [
      /«closed \+= 1 → ;»|closed \+= «1 → 0»/,
      /c\.id = \$1 «and → or» c\.worker like/,
      /pruned_seq «< → <=» \$2/,
      /seq «> → >=» \$2 and seq <= \$3/,
      /«held\.delete\(leaseId\(key\)\) → ;»/,
      /«toUsd <= limitUsd → /,
    ],
  },
  {
    below: 'src/inbox/',
    reason: 'The value is read only of a message with a budget.',
    edits: [/hasBudget = .*«left !== undefined → /],
  },
  {
    below: 'src/workspaces/',
    reason:
      'Both give the same result for every value that comes here: ids, pairs of lines, sorted names, a refused secret.',
    edits: [
      /AFTER_ALL_IDS = 'mem_z« → ~»'/,
      /lines\.length > «0 → 1» && \{ text: wrapLines/,
      /\(a\.name < b\.name \? .*«1 → 0»/,
      /«sameHash\(row\.hash, hashed\) \|\| overlap === null → /,
      /isMap\(document\.get\('runtime_config', «/,
      /let drops = «/,
    ],
  },
  {
    below: 'src/workspaces/',
    reason: 'Only a process that changes the same folder between two system calls sees it, and no test can time that.',
    edits: [/rm\(join\(trashDir, name\), .*force: «/, /if \(!stats\.isFile\(\)\) «throw fileNotFound/],
  },
]

export const ACCEPTED: readonly AcceptedRule[] = [...KINDS, ...PLACES]
