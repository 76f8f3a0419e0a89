/** Turns, tokens and cost by name, with their sum. */
import { useState } from 'react'
import { Cost } from '../../ui/text/time.tsx'
import { countText } from '../../ui/text/times.ts'
import { knownTokens, tokensText, type UsageSumView } from './days.ts'

export interface UsageRow {
  readonly key: string
  readonly name: string
  readonly sum: UsageSumView
  readonly href?: string
}

export interface UsageTableProps {
  /** What a row is. */
  readonly name: string
  readonly rows: readonly UsageRow[]
  readonly total: UsageSumView
  readonly chosen?: string
}

/** More rows are opened by a button. */
const ROWS_SHOWN = 8

export function UsageTable({ name, rows, total, chosen }: UsageTableProps) {
  const [isOpen, setOpen] = useState(false)
  const shown = isOpen ? rows : rows.slice(0, ROWS_SHOWN)
  return (
    <>
      <table className="w-full table-fixed text-second">
        <thead>
          <tr className="border-line border-b text-faint text-time">
            <th className="w-1/2 py-1.5 text-left font-[400]">{name}</th>
            <th className="py-1.5 text-right font-[400]">Turns</th>
            <th className="py-1.5 text-right font-[400]">Tokens</th>
            <th className="py-1.5 text-right font-[400]">Cost</th>
          </tr>
        </thead>
        <tbody>
          {shown.map((row) => (
            <SumRow key={row.key} row={row} isChosen={row.key === chosen} />
          ))}
        </tbody>
        <tfoot>
          <SumRow row={{ key: 'all', name: 'All', sum: total }} isChosen={false} isTotal />
        </tfoot>
      </table>
      {rows.length > ROWS_SHOWN ? (
        <button
          type="button"
          onClick={() => setOpen(!isOpen)}
          className="w-fit font-[550] text-accent text-second max-md:min-h-10"
        >
          {isOpen ? 'Show fewer' : `Show all ${rows.length}`}
        </button>
      ) : null}
    </>
  )
}

interface SumRowProps {
  readonly row: UsageRow
  readonly isChosen: boolean
  readonly isTotal?: boolean
}

function SumRow({ row: { name, sum, href }, isChosen, isTotal = false }: SumRowProps) {
  const cell = 'py-2 text-right'
  return (
    <tr className={isTotal ? 'font-[650]' : 'border-line border-b'}>
      <th
        scope="row"
        title={name}
        className={`truncate py-2 pr-2 text-left ${isTotal || isChosen ? 'font-[650]' : 'font-[400]'}`}
      >
        {href === undefined ? (
          name
        ) : (
          <a href={href} className="rounded-tag hover:text-accent">
            {name}
          </a>
        )}
      </th>
      <td className={cell}>{countText(sum.turns)}</td>
      <td className={knownTokens(sum) === null ? `${cell} italic` : cell}>{tokensText(sum)}</td>
      <td className={cell}>
        <Cost usd={sum.cost_usd} hasUnknown={sum.unknown_cost_turns > 0} />
      </td>
    </tr>
  )
}
