/** Cost by day as bars, or tokens where no cost is known. A dashed cap says that turns of unknown cost came on top. */
import { costText } from '../../ui/text/times.ts'
import { axisOf, knownTokens, shortCount, tokensText, type UsageDay } from './days.ts'

const [WIDTH, HEIGHT] = [400, 150]
const [BOTTOM, TOP] = [24, 18]
/** About the width of a character of a label. */
const CHARACTER_WIDTH = 7
const CAP_HEIGHT = 8
/** Labels under the bars; more would overlap. */
const LABELS_MAX = 6

export function DayChart({ days }: { readonly days: readonly UsageDay[] }) {
  const hasCost = days.some(({ sum }) => sum !== undefined && sum.cost_usd !== null)
  const amountOf = ({ sum }: UsageDay): number => {
    if (sum === undefined) return 0
    return (hasCost ? sum.cost_usd : knownTokens(sum)) ?? 0
  }
  const { end, steps } = axisOf(Math.max(0, ...days.map(amountOf)))
  const labelOf = (step: number) => (hasCost ? axisCost(step) : shortCount(step))
  // Room for the longest label: "$0.00075" is wider than "$3".
  const left = Math.max(...steps.map((step) => labelOf(step).length)) * CHARACTER_WIDTH + 12
  const toY = (value: number) => TOP + (HEIGHT - TOP - BOTTOM) * (1 - value / end)
  const what = hasCost ? 'Cost by day' : 'Tokens by day'
  return (
    <figure className="flex flex-col gap-1">
      <svg viewBox={`0 0 ${WIDTH} ${HEIGHT}`} role="img" aria-label={`${what}. The table below has the same numbers.`}>
        {steps.map((step) => (
          <g key={step}>
            <line
              x1={left}
              x2={WIDTH}
              y1={toY(step)}
              y2={toY(step)}
              className={step === 0 ? 'stroke-edge' : 'stroke-line'}
            />
            <text x={left - 8} y={toY(step) + 3.5} textAnchor="end" className="fill-faint text-chip">
              {labelOf(step)}
            </text>
          </g>
        ))}
        {days.map((day, index) => (
          <Bar key={day.day} day={day} place={placeOf(index, { count: days.length, left })} y={toY(amountOf(day))} />
        ))}
      </svg>
      <figcaption className="text-soft text-time">
        {what} (UTC).
        {days.some(hasCap) ? ' A dashed cap means that turns of unknown cost came on top.' : ''}
      </figcaption>
      <DayTable days={days} />
    </figure>
  )
}

/** Small amounts in full: rounded to cents, two labels of an axis would be the same. */
const axisCost = (usd: number): string =>
  usd === 0 || usd >= 0.02
    ? costText(usd).replace(/\.00$/, '')
    : `$${usd.toLocaleString('en-US', { maximumSignificantDigits: 3 })}`

const hasCap = ({ sum }: UsageDay): boolean => (sum?.unknown_cost_turns ?? 0) > 0

interface BarPlace {
  readonly x: number
  readonly width: number
  readonly hasLabel: boolean
}

function placeOf(index: number, { count, left }: { readonly count: number; readonly left: number }): BarPlace {
  const slot = (WIDTH - left) / count
  const width = Math.min(22, slot * 0.66)
  const every = Math.ceil(count / LABELS_MAX)
  return { x: left + slot * index + (slot - width) / 2, width, hasLabel: (count - 1 - index) % every === 0 }
}

function Bar({
  day,
  place: { x, width, hasLabel },
  y,
}: {
  readonly day: UsageDay
  readonly place: BarPlace
  readonly y: number
}) {
  const floor = HEIGHT - BOTTOM
  return (
    <g>
      {floor - y > 0 ? (
        <rect
          x={x}
          y={y}
          width={width}
          height={floor - y}
          rx={2}
          className={day.isToday ? 'fill-accent' : 'fill-accent opacity-55'}
        />
      ) : null}
      {hasCap(day) ? (
        <rect
          x={x + 1}
          y={y - CAP_HEIGHT - 2}
          width={width - 2}
          height={CAP_HEIGHT}
          rx={3}
          fill="none"
          strokeDasharray="2 2"
          className="stroke-edge"
        />
      ) : null}
      {hasLabel ? (
        <text
          x={x + width / 2}
          y={HEIGHT - 8}
          textAnchor={day.isToday ? 'end' : 'middle'}
          dx={day.isToday ? width / 2 : 0}
          className={day.isToday ? 'fill-ink font-[650] text-chip' : 'fill-faint text-chip'}
        >
          {day.isToday ? 'today' : day.title}
        </text>
      ) : null}
    </g>
  )
}

/** The numbers of the chart. Days without turns are left out. */
function DayTable({ days }: { readonly days: readonly UsageDay[] }) {
  return (
    <details className="text-second">
      <summary className="w-fit rounded-tag font-[550] text-accent max-md:min-h-10">Show as a table</summary>
      <table data-usage="days" className="mt-2 w-full">
        <caption className="sr-only">Usage by day</caption>
        <thead>
          <tr className="border-line border-b text-faint text-time">
            <th className="py-1 text-left font-[400]">Day</th>
            <th className="py-1 text-right font-[400]">Turns</th>
            <th className="py-1 text-right font-[400]">Tokens</th>
            <th className="py-1 text-right font-[400]">Cost</th>
          </tr>
        </thead>
        <tbody>
          {days.toReversed().map(({ day, title, sum }) =>
            sum === undefined ? null : (
              <tr key={day} className="border-line border-b last:border-b-0">
                <th scope="row" className="py-1.5 text-left font-[400]">
                  <time dateTime={day}>{title}</time>
                </th>
                <td className="py-1.5 text-right">{sum.turns}</td>
                <td className={`py-1.5 text-right ${knownTokens(sum) === null ? 'italic' : ''}`}>{tokensText(sum)}</td>
                <td className={`py-1.5 text-right ${sum.cost_usd === null ? 'italic' : ''}`}>
                  {costText(sum.cost_usd, sum.unknown_cost_turns > 0)}
                </td>
              </tr>
            ),
          )}
        </tbody>
      </table>
    </details>
  )
}
