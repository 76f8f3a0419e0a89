/**
 * The log: JSON lines by pino on one stream, structured fields first, one sentence last. Secrets that we hold are
 * registered with `hide` and never reach a line, wherever in the text they stand (path redaction misses free text).
 */
import pino from 'pino'

export interface Log {
  debug(fields: object, message: string): void
  info(fields: object, message: string): void
  warn(fields: object, message: string): void
  error(fields: object, message: string): void
}

export interface MaskingLog extends Log {
  /** From now on this value is written as `[hidden]`. */
  hide(secret: string): void
}

export type LogLevel = 'debug' | 'info' | 'warn' | 'error' | 'silent'

/** Shorter values would mask ordinary words. */
const SECRET_CHARACTERS_MIN = 8

export function createLog(level: LogLevel, destination: { write(line: string): unknown }): MaskingLog {
  const secrets = new Set<string>()
  const masked = {
    write(line: string) {
      let text = line
      for (const secret of secrets) text = text.replaceAll(secret, '[hidden]')
      destination.write(text)
    },
  }
  const logger = pino({ level, base: null, timestamp: pino.stdTimeFunctions.isoTime }, masked)
  return {
    debug: (fields, message) => logger.debug(fields, message),
    info: (fields, message) => logger.info(fields, message),
    warn: (fields, message) => logger.warn(fields, message),
    error: (fields, message) => logger.error(fields, message),
    hide(secret) {
      if (secret.length >= SECRET_CHARACTERS_MIN) secrets.add(secret)
    },
  }
}

/** For tests and for embedders that do not want a log. */
export const silentLog: Log = { debug: ignore, info: ignore, warn: ignore, error: ignore }

function ignore(): void {
  // Nobody reads it.
}
