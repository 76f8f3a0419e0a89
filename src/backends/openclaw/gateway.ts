/**
 * Finds the gateway of openclaw on this machine: the options, else the environment, else openclaw's own settings file.
 * It is read for every turn, so that a new token or port is used at once. Invariant: the token is in no log or error.
 */
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { Outbound } from '../../client/outbound.ts'
import { isJsonObject, type JsonObject, parseJsonObject, stringOf } from '../../protocol/json.ts'
import { trimEndOf } from '../../trim-end.ts'
import type { Endpoint } from '../endpoint.ts'
import { stateFolderOf } from './state-folder.ts'

const DEFAULT_PORT = 18_789
/** A gateway that accepts a connection but does not answer for this long counts as running. */
const HEALTH_MS_MAX = 3000

export interface GatewaySource {
  readonly environment: Readonly<Record<string, string>>
  /** The option `gateway_url`; empty = the port of openclaw's settings, on loopback. */
  readonly url: string
  /** The headers of `token_file`, `token_env` and `headers`. */
  readonly headers: Endpoint['headers']
}

export interface Gateway {
  readonly url: string
  readonly headers: Readonly<Record<string, string>>
  /** Its certificate is its own, so only openclaw's own program can talk to it. */
  readonly usesTls: boolean
}

export async function findGateway({ environment, url, headers }: GatewaySource): Promise<Gateway> {
  const given = await headers()
  const settings = await readGatewaySettings(environment)
  const secret = secretOf(environment, settings)
  const own: Record<string, string> = secret === '' ? {} : { Authorization: `Bearer ${secret}` }
  const port = Number(environment['OPENCLAW_GATEWAY_PORT']) || Number(settings['port']) || DEFAULT_PORT
  const usesTls = url === '' && memberOf(settings, 'tls')['enabled'] === true
  return {
    url: url === '' ? `http://127.0.0.1:${port}` : trimEndOf(url, '/'),
    // The settings of this machine are not for a gateway that the owner named.
    headers: url === '' ? { ...own, ...given } : given,
    usesTls,
  }
}

/** Whether a gateway listens there. It answers /healthz without a login. */
export async function isListening({ url }: Gateway, outbound: Outbound, signal: AbortSignal): Promise<boolean> {
  try {
    const answer = await outbound.send({ url: `${url}/healthz`, trusted: true, totalMs: HEALTH_MS_MAX }, signal)
    answer.discard()
    return true
  } catch (thrown) {
    return !isRefusedConnection(thrown)
  }
}

/** Nothing listens there, so nothing has begun. */
export function isRefusedConnection(thrown: unknown): boolean {
  const cause = thrown instanceof Error ? thrown.cause : undefined
  return isJsonObject(cause) && cause['code'] === 'ECONNREFUSED'
}

/** The member `gateway` of the settings file; empty if the file is missing or is not plain JSON. */
async function readGatewaySettings(environment: GatewaySource['environment']): Promise<JsonObject> {
  const folder = stateFolderOf(environment)
  const path = environment['OPENCLAW_CONFIG_PATH'] || (folder && join(folder, 'openclaw.json'))
  if (!path) return {}
  // Missing or unreadable: openclaw's own program may know more.
  const text = await readFile(path, 'utf8').catch(() => '')
  return memberOf(parseJsonObject(text) ?? {}, 'gateway')
}

function secretOf(environment: GatewaySource['environment'], settings: JsonObject): string {
  const auth = memberOf(settings, 'auth')
  const isPassword = auth['mode'] === 'password'
  const variable = isPassword ? 'OPENCLAW_GATEWAY_PASSWORD' : 'OPENCLAW_GATEWAY_TOKEN'
  const secret = environment[variable] || stringOf(auth[isPassword ? 'password' : 'token'])
  // A reference such as ${NAME} is for openclaw to resolve. A header takes no other characters.
  return /^[\x21-\x7e]+$/.test(secret) && !secret.includes('${') ? secret : ''
}

function memberOf(value: JsonObject, name: string): JsonObject {
  const member = value[name]
  return isJsonObject(member) ? member : {}
}
