/**
 * The log: JSON lines by pino on one stream. It masks registered secrets (`hide`) and texts that look like the key of a
 * known service, anywhere in the line; pino's redaction by path misses secrets in free text.
 * Invariant: masking twice gives the same as masking once, and a JSON line stays JSON, because no pattern crosses a
 * quote or a backslash.
 */
import pino from 'pino'

export interface Log {
  debug(fields: object, message: string): void
  info(fields: object, message: string): void
  warn(fields: object, message: string): void
  error(fields: object, message: string): void
}

export interface MaskingLog extends Log, SecretMask {}

export type LogLevel = 'debug' | 'info' | 'warn' | 'error' | 'silent'

export function createLog(level: LogLevel, destination: { write(line: string): unknown }): MaskingLog {
  const { hide, mask } = createSecretMask()
  const masked = { write: (line: string) => destination.write(mask(line)) }
  const logger = pino({ level, base: null, timestamp: pino.stdTimeFunctions.isoTime }, masked)
  return {
    debug: (fields, message) => logger.debug(fields, message),
    info: (fields, message) => logger.info(fields, message),
    warn: (fields, message) => logger.warn(fields, message),
    error: (fields, message) => logger.error(fields, message),
    hide,
    mask,
  }
}

/** For tests and for embedders that do not want a log. */
export const silentLog: Log = { debug: ignore, info: ignore, warn: ignore, error: ignore }

function ignore(): void {
  // Discards the entry.
}

const HIDDEN = '[hidden]'
/** Shorter values would mask ordinary words. */
const SECRET_CHARACTERS_MIN = 8
/** Secrets come from settings, not from messages, so more is a leak. Later ones are not registered. */
const SECRETS_MAX = 10_000

export interface SecretMask {
  /** Masks this value as `[hidden]` from now on. Values below 8 characters are ignored. */
  hide(secret: string): void
  mask(text: string): string
}

export function createSecretMask(): SecretMask {
  // Longest first: a short secret that is a prefix of a long one would leave the end of the long one visible.
  let secrets: string[] = []
  return {
    hide(secret) {
      if (secret.length < SECRET_CHARACTERS_MIN || secrets.includes(secret) || secrets.length >= SECRETS_MAX) return
      const escaped = JSON.stringify(secret).slice(1, -1)
      const forms = escaped === secret ? [secret] : [secret, escaped]
      secrets = [...secrets, ...forms].sort((one, other) => other.length - one.length)
    },
    mask(text) {
      let masked = text
      for (const secret of secrets) masked = masked.replaceAll(secret, HIDDEN)
      return maskPatterns(masked)
    },
  }
}

/**
 * Masks texts that look like a key of a known service. Its time grows with the length only: it also reads texts of
 * strangers, such as a remote agent's failure.
 */
export function maskPatterns(text: string): string {
  let masked = maskWebTokens(maskPrivateKeys(text))
  for (const [pattern, shown] of PATTERNS) masked = masked.replace(pattern, shown)
  return masked
}

/** Values of the variables whose names contain TOKEN, PASSWORD and the like. */
export function secretValues(environment: Readonly<Record<string, string | undefined>>): string[] {
  return Object.entries(environment).flatMap(([name, value]) => (value && SECRET_NAME.test(name) ? [value] : []))
}

const SECRET_NAME = /(?:TOKEN|SECRET|PASSWORD|PASSWD|API_?KEY|ACCESS_KEY|PRIVATE_KEY|CREDENTIALS?)(?:$|_)/i

const PATTERNS: readonly (readonly [RegExp, string])[] = [
  [/\b(Bearer|Basic) +[\w.~+/=-]{8,}/gi, `$1 ${HIDDEN}`],
  // Molecule, model providers, GitHub, GitLab, Slack, Google, npm.
  [/\bmol_[\w-]{20,}/g, HIDDEN],
  // After a line break, which is `\n` in JSON, a token is not at the beginning of a word.
  [/mol_[\w-]{43,}/g, HIDDEN],
  [/\bsk-[\w-]{16,}/g, HIDDEN],
  [/\bgh[pousr]_\w{20,}/g, HIDDEN],
  [/\bgithub_pat_\w{20,}/g, HIDDEN],
  [/\bglpat-[\w-]{16,}/g, HIDDEN],
  [/\bxox[abeoprs]-[\w-]{10,}/g, HIDDEN],
  [/\bxapp-[\w-]{10,}/g, HIDDEN],
  [/\bAIza[\w-]{30,}/g, HIDDEN],
  [/\bnpm_\w{30,}/g, HIDDEN],
  // AWS: the id of a key.
  [/\b(?:AKIA|ASIA)[A-Z0-9]{16}\b/g, HIDDEN],
  // Discord: a bot token of three dotted pieces, and a webhook URL. Telegram: a number, a colon, 35 characters.
  [/\b[\w-]{23,28}\.[\w-]{6,7}\.[\w-]{27,45}/g, HIDDEN],
  [/\/api\/webhooks\/\d{5,}\/[\w-]{20,}/g, `/api/webhooks/${HIDDEN}`],
  [/\b\d{8,12}:[\w-]{35}/g, HIDDEN],
  // Matrix: the access tokens of Synapse and of its authentication service.
  [/\bsyt_[A-Za-z0-9+/]{4,200}_[A-Za-z]{20}_\w{6}/g, HIDDEN],
  [/\bm[ac]t_[A-Za-z0-9]{20,}_\w{6}/g, HIDDEN],
  // A password in a URL, and `name=value` where the name says that the value is secret.
  [/:\/\/[^\s/@"'\\:]{1,256}:[^\s/@"'\\]{1,256}@/g, `://${HIDDEN}@`],
  [/=(?<=(?:api[_-]?key|access[_-]?key|secret|password|passwd|token)=)[^\s"'\\&;[]{6,}/gi, `=${HIDDEN}`],
]

const KEY_BEGIN = /-----BEGIN [A-Z ]{0,30}PRIVATE KEY-----/g
const KEY_END = /-----END [A-Z ]{0,30}PRIVATE KEY-----/g

/** In code: as one pattern, each beginning without an end would read the text to its end. */
function maskPrivateKeys(text: string): string {
  let masked = ''
  let from = 0
  for (;;) {
    const begin = matchFrom(KEY_BEGIN, text, from)
    const end = begin === undefined ? undefined : matchFrom(KEY_END, text, begin.end)
    if (begin === undefined || end === undefined) return masked + text.slice(from)
    masked += text.slice(from, begin.start) + HIDDEN
    from = end.end
  }
}

function matchFrom(pattern: RegExp, text: string, from: number): { start: number; end: number } | undefined {
  pattern.lastIndex = from
  const found = pattern.exec(text)
  return found === null ? undefined : { start: found.index, end: pattern.lastIndex }
}

const PIECE_CHARACTERS_MIN = 8
const HEAD_CHARACTERS_MIN = 'eyJ'.length + PIECE_CHARACTERS_MIN

/** JSON web tokens. In code: as one pattern, each `eyJ` of a long word would read the word to its end. */
function maskWebTokens(text: string): string {
  return text.includes('eyJ') ? text.replace(/[\w.-]+/g, maskWebToken) : text
}

/** Masks three pieces of a dotted word, where the first begins with `eyJ` or has it after a dash. */
function maskWebToken(word: string): string {
  const pieces = word.split('.')
  const masked: string[] = []
  for (let index = 0; index < pieces.length; index++) {
    const [head = '', second = '', third = ''] = [pieces[index], pieces[index + 1], pieces[index + 2]]
    const isFollowed = Math.min(second.length, third.length) >= PIECE_CHARACTERS_MIN
    const start = isFollowed ? head.search(/\beyJ/) : -1
    const isToken = start !== -1 && head.length - start >= HEAD_CHARACTERS_MIN
    masked.push(isToken ? head.slice(0, start) + HIDDEN : head)
    if (isToken) index += 2
  }
  return masked.join('.')
}
