/**
 * The failures of openclaw, from what its program prints and what its gateway answers. Pure. `details.gateway` says why a
 * way to openclaw was refused before the turn began: openclaw.ts then takes another way.
 */
import { MoleculeError } from '../../errors.ts'
import { providerError } from '../engine/failure/agent-errors.ts'

/**
 * `running`: `--local` is refused, because a gateway owns the state folder. `away`: no gateway listens. `closed`: the
 * gateway does not serve us over HTTP.
 */
export type GatewayState = 'running' | 'away' | 'closed'

export function gatewayRefusal(gateway: GatewayState, message: string, cause?: unknown): MoleculeError {
  return new MoleculeError('agent_failed', message, { retryable: true, cause, details: { gateway } })
}

/** The state that a refusal names; undefined for any other error. */
export function gatewayStateIn({ details }: MoleculeError): GatewayState | undefined {
  const { gateway } = details
  return gateway === 'running' || gateway === 'away' || gateway === 'closed' ? gateway : undefined
}

/** The error in openclaw's own words. */
export function openclawError(message: string, nowMs: number): MoleculeError {
  if (/A Gateway is running for this state directory/i.test(message)) return gatewayRefusal('running', message)
  if (/Gateway not reachable/i.test(message) && /ECONNREFUSED/i.test(message)) return gatewayRefusal('away', message)
  if (/failed to acquire gateway state ownership/i.test(message)) {
    const text = `another process uses openclaw's state folder: ${message}`
    return new MoleculeError('agent_failed', text, { retryable: true })
  }
  if (/timed out before a response/i.test(message)) return new MoleculeError('timeout', message, { retryable: true })
  if (/couldn't generate a response/i.test(message)) {
    return new MoleculeError('empty_response', `openclaw gave no reply: ${message}`, { retryable: true })
  }
  // `Retry after about 1 minute`: without "about" the engine reads the delay.
  const text = message.replace('after about', 'after')
  const [, named, leading] = /\bHTTP (\d{3})\b|^([45]\d\d) /.exec(text) ?? []
  // After a refusal openclaw itself holds a key back for a while and says for how long.
  const found = /temporarily disabled/i.test(text) ? '429' : (named ?? leading)
  return providerError('openclaw', { text, status: found === undefined ? undefined : Number(found), nowMs })
}
