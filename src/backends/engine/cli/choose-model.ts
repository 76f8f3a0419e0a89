/**
 * The model of a turn: the option `model` of `runtime_config`, else the model of the workspace. Some programs take
 * `provider/model`, others only the model: for those the provider is removed.
 */
import { MoleculeError } from '../../../errors.ts'

/** A provider is a plain word. A first part with a colon or a dot (an ARN, a host) belongs to the model's name. */
const PROVIDER = /^[A-Za-z0-9_-]+\/(?=.)/

/** Undefined = the program chooses. */
export function chooseModel(
  option: string,
  ofTurn: string | undefined,
  prefix: 'kept' | 'dropped',
): string | undefined {
  const name = option || ofTurn
  if (!name) return undefined
  const model = prefix === 'kept' ? name : name.replace(PROVIDER, '')
  // The program would take a model called `--yolo` for an option of its own.
  if (model.trimStart().startsWith('-'))
    throw new MoleculeError('bad_config', `the model ${JSON.stringify(model)} begins with a dash`)
  return model
}
