/** Reads an amount of US dollars from the command line. */
import { InvalidArgumentError } from 'commander'
import { COST_USD_MAX, isBudget } from '../../protocol/delegation.ts'

/** `0.50` or `$0.50`. */
export function readUsd(text: string): number {
  const amount = /^\$?\d+(\.\d+)?$/.test(text) ? Number(text.replace('$', '')) : Number.NaN
  if (isBudget(amount)) return amount
  throw new InvalidArgumentError(`It must be an amount of US dollars above 0 and up to ${COST_USD_MAX}, such as 0.50.`)
}
