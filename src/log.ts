/**
 * The log: JSON lines by pino on one stream, structured fields first, one sentence last. Secrets that we hold are
 * registered with `hide` and never reach a line, wherever in the text they stand (path redaction misses free text);
 * nor does what looks like a key of a service that agents use. Invariant: masking a text twice is masking it once, and
 * a JSON line stays JSON, for no pattern reaches over a quote or a backslash.
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
  // Nobody reads it.
}

const HIDDEN = '[hidden]'
/** Shorter values would mask ordinary words. */
const SECRET_CHARACTERS_MIN = 8
/** Settings, not messages: a set that grows without end would be a leak of its own. */
const SECRETS_MAX = 10_000

export interface SecretMask {
  /** From now on this value is shown as `[hidden]`. */
  hide(secret: string): void
  mask(text: string): string
}

export function createSecretMask(): SecretMask {
  // The longest first: where one secret begins like another, the rest of the longer one must not be left standing.
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

/** What looks like a key, wherever it stands. */
export function maskPatterns(text: string): string {
  let masked = text
  for (const [pattern, shown] of PATTERNS) masked = masked.replace(pattern, shown)
  return masked
}

/** Values of variables whose names say that they are secret. */
export function secretValues(environment: Readonly<Record<string, string | undefined>>): string[] {
  return Object.entries(environment).flatMap(([name, value]) => (value && SECRET_NAME.test(name) ? [value] : []))
}

const SECRET_NAME = /(?:TOKEN|SECRET|PASSWORD|PASSWD|API_?KEY|ACCESS_KEY|PRIVATE_KEY|CREDENTIALS?)(?:$|_)/i

const PATTERNS: readonly (readonly [RegExp, string])[] = [
  [/-----BEGIN [A-Z ]{0,30}PRIVATE KEY-----.*?-----END [A-Z ]{0,30}PRIVATE KEY-----/gs, HIDDEN],
  [/\b(Bearer|Basic) +[\w.~+/=-]{8,}/gi, `$1 ${HIDDEN}`],
  // Ours, and those of model providers, GitHub, GitLab, Slack, Google, npm.
  [/\bmol_[\w-]{20,}/g, HIDDEN],
  [/\bsk-[\w-]{16,}/g, HIDDEN],
  [/\bgh[pousr]_\w{20,}/g, HIDDEN],
  [/\bgithub_pat_\w{20,}/g, HIDDEN],
  [/\bglpat-[\w-]{16,}/g, HIDDEN],
  [/\bxox[abeoprs]-[\w-]{10,}/g, HIDDEN],
  [/\bxapp-[\w-]{10,}/g, HIDDEN],
  [/\bAIza[\w-]{30,}/g, HIDDEN],
  [/\bnpm_\w{30,}/g, HIDDEN],
  // AWS: the id of a key, and the secret beside its name.
  [/\b(?:AKIA|ASIA)[A-Z0-9]{16}\b/g, HIDDEN],
  // Discord: three pieces with dots, and the address of a webhook. Telegram: a number, a colon, 35 characters.
  [/\b[\w-]{23,28}\.[\w-]{6,7}\.[\w-]{27,45}/g, HIDDEN],
  [/\/api\/webhooks\/\d{5,}\/[\w-]{20,}/g, `/api/webhooks/${HIDDEN}`],
  [/\b\d{8,12}:[\w-]{35}/g, HIDDEN],
  // JSON web tokens.
  [/\beyJ[\w-]{8,}\.[\w-]{8,}\.[\w-]{8,}/g, HIDDEN],
  // A password in a URL, and whatever is called a secret where it is assigned.
  [/:\/\/[^\s/@"'\\:]{1,256}:[^\s/@"'\\]{1,256}@/g, `://${HIDDEN}@`],
  [/\b([\w-]{0,40}(?:api[_-]?key|access[_-]?key|secret|password|passwd|token))=[^\s"'\\&;[]{6,}/gi, `$1=${HIDDEN}`],
]
