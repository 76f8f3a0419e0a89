/** From the wire to ours: the bodies of `POST` and `PATCH` become input for the workspaces. */
import { isDeepStrictEqual } from 'node:util'
import type { z } from 'zod'
import type { newWorkspaceSchema, workspaceChangeSchema } from '../../../api/workspaces.ts'
import { MoleculeError } from '../../../errors.ts'
import type { Json } from '../../../protocol/a2a.ts'
import { hideSecrets, holdsHidden } from '../../../workspaces/hide-secrets.ts'
import { HIDDEN_SECRET, type NewWorkspace, type WorkspaceChange } from '../../../workspaces/workspace.ts'

/** The body of `POST /workspaces`. */
export function toNewWorkspace(body: z.output<typeof newWorkspaceSchema>): NewWorkspace {
  const { name, template, team, model, parent_id: parentId, permission, allow_duplicate: allowDuplicate } = body
  const fields = fromWire(body)
  for (const [key, value] of Object.entries(fields.runtimeConfig ?? {})) if (holdsHidden(value)) throw stillHidden(key)
  return withoutUndefined({ ...fields, name, template, team, model, parentId, permission, allowDuplicate })
}

/**
 * The body of `PATCH /workspaces/:id`. A setting that comes back as it was shown, with its secrets hidden, is unchanged.
 * Prevents that the mask is stored in place of the secret: a setting that is hidden and changed is refused.
 */
export function toWorkspaceChange(
  body: z.output<typeof workspaceChangeSchema>,
  stored: Readonly<Record<string, Json>>,
): WorkspaceChange {
  const isUnchanged = (key: string, value: Json) =>
    value === HIDDEN_SECRET || (stored[key] !== undefined && isDeepStrictEqual(value, hideSecrets(stored[key], key)))
  const { runtimeConfig: given, ...fields } = fromWire(body)
  const config = Object.entries(given ?? {}).filter(
    ([key, value]) => !holdsHidden(value) || !isUnchanged(key, value as Json),
  )
  const halfShown = config.find(([, value]) => holdsHidden(value))
  if (halfShown !== undefined) throw stillHidden(halfShown[0])
  const { name, model, parent_id: parentId, permission, allow_duplicate: allowDuplicate } = body
  return withoutUndefined({
    ...fields,
    name,
    model,
    parentId,
    permission,
    allowDuplicate,
    ...(given === undefined ? {} : { runtimeConfig: Object.fromEntries(config) }),
  })
}

function stillHidden(key: string): MoleculeError {
  const message = `runtime_config.${key} holds a secret as "${HIDDEN_SECRET}": send the secret itself, or leave the key out`
  return new MoleculeError('invalid_request', message, { details: { path: `runtime_config.${key}` } })
}

/** From the names of the wire to ours. */
function fromWire(
  body: Omit<z.infer<typeof workspaceChangeSchema>, 'name' | 'model' | 'parent_id' | 'permission' | 'allow_duplicate'>,
) {
  return {
    role: body.role,
    runtime: body.runtime,
    tier: body.tier,
    maxConcurrentTasks: body.max_concurrent_tasks,
    maxAttempts: body.max_attempts,
    workingDir: body.working_dir,
    // The address of a remote agent is its main setting, so it may stand at the top beside the runtime.
    runtimeConfig: body.url === undefined ? body.runtime_config : { ...body.runtime_config, url: body.url },
  }
}

type Defined<T> = { [K in keyof T]: Exclude<T[K], undefined> }

function withoutUndefined<T extends object>(value: T): Defined<T> {
  return Object.fromEntries(Object.entries(value).filter(([, member]) => member !== undefined)) as Defined<T>
}
