/**
 * Assembles the system prompt of an agent, a model or a program of the owner, from the workspace's folder, for every
 * message anew: `system-prompt.md`, the role, the peers, then `IDENTITY.md`, `USER.md` and `MEMORY.md`. Backends compare it
 * with what their session knows and send it again only when it changed, so nothing in it may change by itself: no time, no
 * status of a peer. `AGENTS.md` and `CLAUDE.md` are left out, because the agents read them themselves.
 */
import { closeSync, openSync, readSync, statSync } from 'node:fs'
import { basename, join } from 'node:path'
import { MoleculeError } from '../../errors.ts'
import type { Store } from '../../store/store.ts'
import type { Homes } from '../homes/homes.ts'
import { mayTalk } from '../may-talk.ts'
import { listTeam, type TeamMember } from '../workspace-rows.ts'
import type { BriefStep } from './make-brief.ts'

const SYSTEM_PROMPT_FILE = 'system-prompt.md'
const APPENDED_FILES = ['IDENTITY.md', 'USER.md', 'MEMORY.md']
/** Longer files are cut: codex takes at most 96 KiB in all. */
const SYSTEM_PROMPT_BYTES_MAX = 32 * 1024
const APPENDED_BYTES_MAX = 16 * 1024
/** More peers are only counted; `a2a peers` lists all. */
const PEERS_MAX = 30
const ROLE_CHARACTERS_MAX = 200
/** The list of all workspaces is read at most once in this time. */
const TEAM_KNOWN_MS = 1000
/** Files whose text is cached. At the limit the cache is cleared. */
const CACHED_FILES_MAX = 1000

export interface SystemPromptOptions {
  readonly store: Store
  readonly homes: Homes
  /** Whether that backend has a use for the prompt. */
  readonly readsPrompt: (runtime: string) => boolean
  /** Whether the agent can run `a2a`, and so can ask its peers. */
  readonly runsCommands: (runtime: string) => boolean
  /** Whether it is a program that reads the prompt, and perhaps can ask its peers. */
  readonly readsBrief: (runtime: string) => boolean
}

/** Adds the whole system prompt in place of the role. */
export function systemPromptStep({
  store,
  homes,
  readsPrompt,
  runsCommands,
  readsBrief,
}: SystemPromptOptions): BriefStep<{ readonly workspaceId: string }> {
  const read = createFileReader()
  const teamOf = createTeam(store)
  const peersOf = createPeersText()
  return async (brief, key) => {
    if (!readsPrompt(brief.runtime)) return brief
    const id = key.workspaceId
    const fileOf = (name: string, bytesMax: number) => read(join(homes.path(id), name), bytesMax)
    const role = brief.systemPrompt
    const parts = [
      fileOf(SYSTEM_PROMPT_FILE, SYSTEM_PROMPT_BYTES_MAX),
      role === '' ? '' : `Your role: ${role}`,
      runsCommands(brief.runtime) ? peersOf(id, await teamOf(id)) : '',
      ...APPENDED_FILES.map((name) => withHeading(name, fileOf(name, APPENDED_BYTES_MAX))),
    ]
    const peers = readsBrief(brief.runtime) ? peersOf(id, await teamOf(id)) : ''
    return { ...brief, systemPrompt: parts.filter((part) => part !== '').join('\n\n'), ...(peers !== '' && { peers }) }
  }
}

const withHeading = (name: string, text: string): string => (text === '' ? '' : `<!-- ${name} -->\n${text}`)

/** The text of a file; empty if there is none. It is read again when its time, size or inode changed. */
function createFileReader() {
  const cache = new Map<string, { readonly stamp: string; readonly text: string }>()
  const read = (path: string, bytesMax: number): string => {
    const found = statSync(path, { throwIfNoEntry: false, bigint: true })
    // Reading a pipe would block the event loop until another process writes to it.
    if (found === undefined || !found.isFile()) return ''
    const stamp = `${found.mtimeNs}.${found.size}.${found.ino}`
    const known = cache.get(path)
    if (known?.stamp === stamp) return known.text
    if (cache.size >= CACHED_FILES_MAX) cache.clear()
    const text = readStart(path, bytesMax)
    cache.set(path, { stamp, text })
    return text
  }
  return (path: string, bytesMax: number): string => {
    try {
      return read(path, bytesMax)
    } catch (thrown) {
      // Without its instructions an agent would do its work wrong, and nothing would show it.
      const code = (thrown as NodeJS.ErrnoException).code ?? 'an unknown reason'
      throw new MoleculeError('bad_config', `${basename(path)} of the workspace cannot be read: ${code}`)
    }
  }
}

/** The first bytes of the file; the file may be of any size. */
function readStart(path: string, bytesMax: number): string {
  const buffer = Buffer.alloc(bytesMax + 1)
  const file = openSync(path, 'r')
  try {
    const length = readSync(file, buffer, 0, buffer.length, 0)
    if (length <= bytesMax) return buffer.toString('utf8', 0, length).trim()
  } finally {
    closeSync(file)
  }
  // A character that the cut divides is dropped.
  const text = buffer.toString('utf8', 0, bytesMax).replace(/\uFFFD$/, '')
  return `${text.trim()}\n[The rest is left out: the file is longer than ${bytesMax / 1024} KiB.]`
}

/** All workspaces, as of at most a second ago. */
function createTeam(store: Store) {
  let known: { readonly atMs: number; readonly team: Promise<readonly TeamMember[]> } | undefined
  const read = (): Promise<readonly TeamMember[]> => {
    const nowMs = performance.now()
    if (known !== undefined && nowMs - known.atMs < TEAM_KNOWN_MS) return known.team
    const team = store.read(listTeam)
    known = { atMs: nowMs, team }
    // A failed read is not kept: the next message reads again.
    team.catch(() => {
      if (known?.team === team) known = undefined
    })
    return team
  }
  return async (id: string): Promise<readonly TeamMember[]> => {
    const team = await read()
    if (team.some((member) => member.id === id)) return team
    // The first prompt of a workspace that is younger than the list would name no peer, and the second would differ.
    known = undefined
    return await read()
  }
}

/** Keeps the text of a workspace as long as the list of all is the same: a program that runs for 5 ms gets it too. */
function createPeersText() {
  let team: readonly TeamMember[] = []
  const texts = new Map<string, string>()
  return (id: string, current: readonly TeamMember[]): string => {
    if (current !== team) texts.clear()
    team = current
    const text = texts.get(id) ?? describePeers(id, team)
    texts.set(id, text)
    return text
  }
}

function describePeers(id: string, team: readonly TeamMember[]): string {
  const own = team.find((member) => member.id === id)
  const peers = own === undefined ? [] : team.filter((member) => mayTalk(own, member).ok)
  if (peers.length === 0) return ''
  const lines = peers.slice(0, PEERS_MAX).map((peer) => `- ${peer.name} (${peer.id})${describeRole(peer.role)}`)
  if (peers.length > PEERS_MAX) lines.push(`- and ${peers.length - PEERS_MAX} more`)
  return `Workspaces that you can ask:\n${lines.join('\n')}`
}

function describeRole(role: string): string {
  const line = role.replace(/\s+/g, ' ').trim()
  if (line === '') return ''
  return `: ${line.length > ROLE_CHARACTERS_MAX ? `${line.slice(0, ROLE_CHARACTERS_MAX)} ...` : line}`
}
