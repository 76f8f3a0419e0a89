/** The path of a folder, which breaks at its slashes where it is too long for a line. */
import { Fragment } from 'react'

export function FolderPath({ path }: { readonly path: string }) {
  return (
    <code className="font-mono text-[0.95em] [overflow-wrap:anywhere]">
      {path.split('/').map((name, index) => (
        // biome-ignore lint/suspicious/noArrayIndexKey: the names of a path do not move.
        <Fragment key={index}>
          {index === 0 ? null : '/'}
          <wbr />
          {name}
        </Fragment>
      ))}
    </code>
  )
}
