/**
 * The login of an ACP agent that must be told to log in (cline): its methods, the call of the one that the owner chose,
 * and the sentence that lists them. Texts of the agent are bounded and without control characters.
 */
import type { AuthMethodAgent } from '@agentclientprotocol/sdk'
import { MoleculeError } from '../../../errors.ts'
import { printableName } from '../../../printable.ts'
import { isJsonObject, stringOf } from '../../../protocol/json.ts'
import { agentError } from './acp-errors.ts'
import type { AcpRpc } from './wire.ts'

export type AcpAuthMethod = Pick<AuthMethodAgent, 'id' | 'name'> & { readonly description: string }

/** Of an agent's greeting. */
interface Offer {
  readonly authMethods: readonly AcpAuthMethod[]
}

/** Methods that are listed. The rest is left out. */
const METHODS_MAX = 20

export function readAuthMethods(value: unknown): readonly AcpAuthMethod[] {
  if (!Array.isArray(value)) return []
  return value
    .slice(0, METHODS_MAX)
    .filter(isJsonObject)
    .map(({ id, name, description }) => ({
      id: printableName(stringOf(id)),
      name: printableName(stringOf(name)),
      description: printableName(stringOf(description)),
    }))
    .filter(({ id }) => id !== '')
}

/** After the greeting: calls the method, so that the sessions of the process are logged in. */
export async function logIn<T extends Offer>(rpc: AcpRpc, greeting: Promise<T>, methodId: string): Promise<T> {
  const greeted = await greeting
  if (!greeted.authMethods.some(({ id }) => id === methodId)) {
    const message = `the agent has no login method ${JSON.stringify(methodId)}; ${authAdvice(greeted.authMethods)}`
    throw new MoleculeError('bad_config', message)
  }
  await rpc.request('authenticate', { methodId }, new AbortController().signal).catch((thrown: unknown) => {
    const { message } = agentError(thrown, Date.now())
    throw new MoleculeError('auth_failed', `the agent refuses the login method ${methodId}: ${message}`, {
      cause: thrown,
    })
  })
  return greeted
}

/** For the owner of an agent that wants a login: the error with its methods and the option to set. */
export function withAuthMethods(error: MoleculeError, { authMethods }: Offer): MoleculeError {
  if (authMethods.length === 0) return error
  const { code, message, retryable, details, cause } = error
  return new MoleculeError(code, `${message.replace(/\.$/, '')}; ${authAdvice(authMethods)}`, {
    retryable,
    details,
    cause,
  })
}

/** Also for the owner of a bridge, who has no `runtime_config`. Without a full stop. */
export function authAdvice(methods: readonly AcpAuthMethod[]): string {
  if (methods.length === 0) return 'it offers no login method: remove the option auth_method'
  const listed = methods.map(({ id, name, description }) => {
    const about = [name, description].filter((text) => text !== '' && text !== id).join(': ')
    return about === '' ? id : `${id} (${about})`
  })
  return `set the option auth_method to one of its login methods: ${listed.join(', ')}`
}
