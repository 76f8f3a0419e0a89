/**
 * What travels with a delegation, in `molecule_delegation` of the metadata of its message: who sent the first message,
 * and how far the work may still spread. The platform writes it on every delegated message. A sender may give smaller
 * values, and they count; a larger value changes nothing. So the limits only narrow from a parent to its children.
 */
import { MoleculeError } from '../errors.ts'
import type { Metadata } from './a2a.ts'

export const DELEGATION_KEY = 'molecule_delegation'

export interface DelegationLimits {
  /** How many more times the work may be delegated from here on. */
  readonly depth_left?: number
  /** How many turns the children of this message may cause, with their own children. */
  readonly turns_left?: number
  /** An ISO time: a delegation that has not begun by then expires, and there is no new one. */
  readonly deadline?: string
  /** How much the turns of this message and of its children may cost together, in US dollars. */
  readonly max_cost_usd?: number
  /** What was left of every such budget above this message when it was sent. The platform writes it. */
  readonly cost_left_usd?: number
}

export interface DelegationEnvelope extends DelegationLimits {
  readonly root_task: string
  /** The principal of the first message. */
  readonly root_caller: string
  /** How many turns the whole tree may cause. */
  readonly turns_max: number
  /** The messages above it whose `max_cost_usd` covers it, by id. */
  readonly budgets?: readonly string[]
}

/** The limits that a message carries. Anything that is no limit counts as none: a limit can be given, never widened. */
export function readLimits(metadata: Metadata | undefined): DelegationLimits {
  const { depth_left: depth, turns_left: turns, deadline, ...money } = delegationIn(metadata) ?? {}
  const { max_cost_usd: cost, cost_left_usd: left } = money
  return {
    ...(isCount(depth) && { depth_left: Math.floor(depth) }),
    ...(isCount(turns) && { turns_left: Math.floor(turns) }),
    ...(typeof deadline === 'string' && !Number.isNaN(Date.parse(deadline)) && { deadline: toIso(deadline) }),
    ...(isCount(cost) && { max_cost_usd: cost }),
    ...(isCount(left) && { cost_left_usd: left }),
  }
}

function delegationIn(metadata: Metadata | undefined): Readonly<Record<string, unknown>> | undefined {
  const given = metadata?.[DELEGATION_KEY]
  if (typeof given !== 'object' || given === null || Array.isArray(given)) return undefined
  return given as Readonly<Record<string, unknown>>
}

/** A budget above it is surely a mistake. */
export const COST_USD_MAX = 1_000_000

export const isBudget = (value: unknown): value is number =>
  typeof value === 'number' && value > 0 && value <= COST_USD_MAX

/** The budget that the sender gave its message. Throws `invalid_request`: a budget must not be ignored for a typing error. */
export function readBudget(metadata: Metadata | undefined): number | undefined {
  const given = delegationIn(metadata)?.['max_cost_usd']
  if (given === undefined || given === null) return undefined
  if (isBudget(given)) return given
  throw new MoleculeError('invalid_request', `max_cost_usd must be a number above 0 and up to ${COST_USD_MAX}`, {
    details: { path: `message.metadata.${DELEGATION_KEY}.max_cost_usd` },
  })
}

/** Whether a budget may cover the message. False for most messages, which then cost no query. */
export function mayHaveBudget(metadata: Metadata | undefined): boolean {
  const given = delegationIn(metadata)
  return given?.['max_cost_usd'] !== undefined || given?.['cost_left_usd'] !== undefined
}

/** The metadata of a message with a budget. */
export const withBudget = (maxCostUsd: number | undefined): { readonly metadata?: Metadata } =>
  maxCostUsd === undefined ? {} : { metadata: { [DELEGATION_KEY]: { max_cost_usd: maxCostUsd } } }

const isCount = (value: unknown): value is number => typeof value === 'number' && value >= 0

const toIso = (time: string): string => new Date(time).toISOString()

/** The smaller one; undefined is no limit. */
export function narrower<T extends number | string>(one: T | undefined, other: T | undefined): T | undefined {
  if (one === undefined || other === undefined) return one ?? other
  return one < other ? one : other
}
