/**
 * The model of a turn: the option `model` of `runtime_config`, else the model of the workspace. Some programs take
 * `provider/model`, others only the model: for those the provider is removed.
 */

/** A provider is a plain word. A first part with a colon or a dot (an ARN, a host) belongs to the model's name. */
const PROVIDER = /^[A-Za-z0-9_-]+\/(?=.)/

/** Undefined = the program chooses. */
export function chooseModel(
  option: string,
  ofTurn: string | undefined,
  prefix: 'kept' | 'dropped',
): string | undefined {
  const model = option || ofTurn
  if (!model) return undefined
  return prefix === 'kept' ? model : model.replace(PROVIDER, '')
}
