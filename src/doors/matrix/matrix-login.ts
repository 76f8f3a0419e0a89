/** The log-in of a bot: its homeserver, its name and its password become an access token. The password is kept nowhere. */
import { MoleculeError } from '../../errors.ts'
import type { LoggedIn, LogInOptions } from '../chat/channel.ts'
import { createMatrixApi, MatrixRefusal, path } from './matrix-api.ts'
import { connectError } from './matrix-errors.ts'
import { listOf, objectOf, textOf } from './matrix-json.ts'

const DEVICE_NAME = 'Molecule'

export async function logInToMatrix({ ask, apiUrl }: LogInOptions, signal: AbortSignal): Promise<LoggedIn> {
  const server =
    apiUrl ?? (await ask({ text: 'The homeserver (matrix.org, https://matrix.example.org)', isSecret: false }))
  const address = await findHomeserver(server, signal)
  const user = await ask({ text: 'The name of the bot (@molecule:example.org, or molecule)', isSecret: false })
  const password = await ask({ text: 'The password of the bot', isSecret: true })
  const body = {
    type: 'm.login.password',
    identifier: { type: 'm.id.user', user },
    password,
    initial_device_display_name: DEVICE_NAME,
  }
  try {
    const answer = await createMatrixApi({ apiUrl: address }).call(
      { method: 'POST', path: path`/client/v3/login`, body },
      signal,
    )
    const token = textOf(answer['access_token'])
    if (token === undefined) throw new MatrixRefusal(502, undefined, undefined)
    return { token, apiUrl: address }
  } catch (error) {
    throw logInError(error)
  }
}

/** An address, or the name of a server, which may say where its homeserver is. */
async function findHomeserver(server: string, signal: AbortSignal): Promise<string> {
  const typed = /^https?:\/\//i.test(server) ? server : `https://${server}`
  if (!URL.canParse(typed)) throw new MoleculeError('bad_config', 'That is no address of a homeserver.')
  const { origin } = new URL(typed)
  const named = await readWellKnown(origin, signal)
  const address = named ?? typed
  await requireHomeserver(address, signal)
  return address
}

async function readWellKnown(origin: string, signal: AbortSignal): Promise<string | undefined> {
  try {
    const late = AbortSignal.any([signal, AbortSignal.timeout(WELL_KNOWN_MS)])
    const response = await fetch(`${origin}/.well-known/matrix/client`, { signal: late })
    if (!response.ok || Number(response.headers.get('content-length') ?? 0) > WELL_KNOWN_BYTES_MAX) return undefined
    const { base_url: address } = objectOf(objectOf(await response.json())['m.homeserver'])
    const isAddress = typeof address === 'string' && /^https?:\/\//i.test(address) && URL.canParse(address)
    return isAddress ? address : undefined
  } catch {
    return undefined
  }
}

const WELL_KNOWN_MS = 10_000
const WELL_KNOWN_BYTES_MAX = 64 * 1024

/** Throws `bad_config` where no homeserver answers. */
export async function requireHomeserver(apiUrl: string, signal: AbortSignal): Promise<readonly unknown[]> {
  const api = createMatrixApi({ apiUrl })
  try {
    const versions = listOf((await api.call({ method: 'GET', path: '/client/versions' }, signal))['versions'])
    if (versions.length > 0) return versions
  } catch (error) {
    throw connectError(error)
  }
  throw new MoleculeError('bad_config', 'There is no Matrix homeserver at this address: check --service-url.')
}

function logInError(error: unknown): MoleculeError {
  if (error instanceof MatrixRefusal && error.status === 403)
    return new MoleculeError('bad_config', 'The homeserver refuses this name and password: check both, and try again.')
  if (error instanceof MatrixRefusal && error.status === 400)
    return new MoleculeError(
      'bad_config',
      'This homeserver takes no password here: make an access token in its account settings, and give it in MATRIX_ACCESS_TOKEN.',
    )
  return connectError(error)
}
