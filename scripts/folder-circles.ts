/**
 * Finds circles between the parts of one folder, which are its folders and its own files; `layers.ts` reports them. A part
 * may import its neighbour or be imported by it, but not both, also not by a detour: then it can be read and tested alone.
 */

interface Link {
  readonly from: string
  readonly to: string
}

/** An import of one file by another. */
interface FileLink extends Link {
  readonly line: number
}

/** An import between two parts of one folder, and where the first such import is. */
interface PartLink extends Link {
  readonly file: string
  readonly line: number
}

export interface FolderCircle {
  readonly file: string
  readonly line: number
  readonly message: string
}

/** `imports` are those between two files of one room. A circle of single files is a cycle of imports, and is left out. */
export function findFolderCircles(imports: readonly FileLink[]): FolderCircle[] {
  return findCircles(partLinks(imports))
    .filter((chain) => chain.some(({ from }) => !isFile(from)))
    .map(describeCircle)
}

/** Each chain of links that ends where it begins, once for the link that closes it. */
export function findCircles<L extends Link>(links: readonly L[]): L[][] {
  const linksOf = Map.groupBy(links, ({ from }) => from)
  const state = new Map<string, 'open' | 'done'>()
  const chain: L[] = []
  const circles: L[][] = []
  const visit = (name: string) => {
    state.set(name, 'open')
    for (const link of linksOf.get(name) ?? []) {
      chain.push(link)
      if (state.get(link.to) === 'open') circles.push(chain.slice(chain.findIndex(({ from }) => from === link.to)))
      if (!state.has(link.to)) visit(link.to)
      chain.pop()
    }
    state.set(name, 'done')
  }
  for (const name of linksOf.keys()) if (!state.has(name)) visit(name)
  return circles
}

/** One link for each pair of parts, in the order of the imports. */
function partLinks(imports: readonly FileLink[]): PartLink[] {
  const links = new Map<string, PartLink>()
  for (const { from, to, line } of imports) {
    const parts = partsOf({ from, to })
    const key = `${parts.from} ${parts.to}`
    if (parts.from !== parts.to && !links.has(key)) links.set(key, { ...parts, file: from, line })
  }
  return [...links.values()]
}

/** The parts of the deepest folder that has both files. */
function partsOf({ from, to }: Link): Link {
  const [names, others] = [from.split('/'), to.split('/')]
  const differ = names.findIndex((name, index) => name !== others[index])
  const part = (path: readonly string[]) => path.slice(0, differ + 1).join('/')
  return differ < 0 ? { from, to } : { from: part(names), to: part(others) }
}

const isFile = (part: string): boolean => /\.\w+$/.test(part)

function describeCircle(chain: readonly PartLink[]): FolderCircle {
  const { file, line } = chain.at(-1) as PartLink
  const way = chain.map(({ to, file: importer }) => ` -> ${to} (in ${importer})`).join('')
  const message = `folders form a circle: ${chain[0]?.from}${way}. Move what both need into the lower one`
  return { file, line, message }
}
