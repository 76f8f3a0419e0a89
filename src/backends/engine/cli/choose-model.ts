/**
 * Which model a turn runs on: the option of the workspace's `runtime_config` over the workspace's own. Some programs
 * take `provider/model`, some know only models: the prefix is kept for the first and dropped for the others.
 */

/** A provider is a plain word; what has a colon or a dot in it (an ARN, a host) is part of the model's name. */
const PROVIDER = /^[A-Za-z0-9_-]+\/(?=.)/

/** Undefined = the program's own choice. */
export function chooseModel(
  option: string,
  ofTurn: string | undefined,
  prefix: 'kept' | 'dropped',
): string | undefined {
  const model = option || ofTurn
  if (!model) return undefined
  return prefix === 'kept' ? model : model.replace(PROVIDER, '')
}
