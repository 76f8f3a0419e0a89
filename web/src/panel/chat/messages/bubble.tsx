/** The message of a person: its text and the names of its files. */
import { useState } from 'react'
import { FileIcon } from '../../../ui/icons.tsx'
import { sizeText } from '../writing/attachments.ts'

/** A longer text is cut until a person opens it. */
const SHOWN_CHARACTERS = 2000

interface BubbleFile {
  readonly name?: string | undefined
  readonly bytes?: number | undefined
}

export function Bubble({ text, files }: { readonly text: string; readonly files: readonly BubbleFile[] }) {
  const [isWhole, setWhole] = useState(text.length <= SHOWN_CHARACTERS * 1.2)
  return (
    <div
      dir="auto"
      className="min-w-0 max-w-[88%] whitespace-pre-wrap break-words rounded-card rounded-br-tag border border-line bg-raised px-3 py-2 text-body max-md:text-[15px] max-md:leading-[22px]"
    >
      {isWhole ? text : `${text.slice(0, SHOWN_CHARACTERS)}… `}
      {isWhole ? null : (
        <button type="button" className="text-accent" onClick={() => setWhole(true)}>
          Show all
        </button>
      )}
      {files.length > 0 ? (
        <ul aria-label="Files" className="flex flex-col gap-1 [&:not(:first-child)]:mt-1.5">
          {files.map(({ name, bytes }, index) => (
            // biome-ignore lint/suspicious/noArrayIndexKey: two files of a message may have the same name.
            <li key={index} className="flex items-center gap-1.5 text-second text-soft">
              <FileIcon className="shrink-0" />
              <span className="min-w-0 truncate">{name ?? 'file'}</span>
              {bytes === undefined ? null : <span className="shrink-0 text-faint text-time">{sizeText(bytes)}</span>}
            </li>
          ))}
        </ul>
      ) : null}
    </div>
  )
}
