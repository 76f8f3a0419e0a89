/** PostgreSQL's types as the seam knows them, which is as the other engine gives them: a truth is 1 or 0. */
import type { Value } from '../store.ts'

const PARSERS: ReadonlyMap<number, (text: string) => Value> = new Map<number, (text: string) => Value>([
  [16, (text) => (text === 't' ? 1 : 0)],
  // bytea, as hexadecimal digits after `\x`
  [17, (text) => Buffer.from(text.slice(2), 'hex')],
  // int8, int2, int4, oid, float4, float8, numeric
  ...[20, 21, 23, 26, 700, 701, 1700].map((oid): [number, (text: string) => Value] => [oid, Number]),
])

const asText = (text: string): Value => text

export const parserOf = (oid: number): ((text: string) => Value) => PARSERS.get(oid) ?? asText
