/** A block of code with a copy button. The highlighter is a chunk of its own, loaded with the first block. */
import { type ReactNode, useEffect, useState } from 'react'
import { IconButton } from '../button.tsx'
import { copyText } from '../copy-text.ts'
import { CheckIcon, CopyIcon } from '../icons.tsx'

const COPIED_MS = 1500
/** Longer code is shown without colours: highlighting it would hold the page. */
const HIGHLIGHT_CHARACTERS_MAX = 50_000

export interface CodeBlockProps {
  readonly code: string
  readonly language?: string | undefined
  /** Code that still grows is not highlighted. */
  readonly isStreaming?: boolean
}

export function CodeBlock({ code, language, isStreaming = false }: CodeBlockProps) {
  const highlighted = useHighlighted(code, isStreaming ? undefined : language)
  return (
    <div className="group relative my-2">
      <pre
        // biome-ignore lint/a11y/noNoninteractiveTabindex: a block that scrolls must be reachable by keyboard.
        tabIndex={0}
        className="focus-inside overflow-x-auto rounded-button border border-line bg-raised p-3 font-mono text-second"
      >
        <code>{highlighted ?? code}</code>
      </pre>
      <CopyButton
        text={code}
        className="absolute top-1 right-1 bg-raised opacity-0 focus:opacity-100 group-hover:opacity-100 pointer-coarse:opacity-100"
      />
    </div>
  )
}

/** Copies a text and shows a tick for a moment. */
export function CopyButton({ text, className }: { readonly text: string; readonly className?: string }) {
  const [copied, setCopied] = useState(false)
  useEffect(() => {
    if (!copied) return
    const timer = setTimeout(() => setCopied(false), COPIED_MS)
    return () => clearTimeout(timer)
  }, [copied])
  const copy = async () => setCopied(await copyText(text))
  return (
    <IconButton label={copied ? 'Copied' : 'Copy'} className={className} onClick={copy}>
      {copied ? <CheckIcon /> : <CopyIcon />}
    </IconButton>
  )
}

function useHighlighted(code: string, language: string | undefined): ReactNode | undefined {
  const [result, setResult] = useState<{ readonly code: string; readonly node: ReactNode }>()
  useEffect(() => {
    if (language === undefined || code.length > HIGHLIGHT_CHARACTERS_MAX) return
    let current = true
    import('./highlight.tsx').then(
      ({ highlight }) => current && setResult({ code, node: highlight(code, language) }),
      // Without the chunk the code is shown without colours.
      () => undefined,
    )
    return () => {
      current = false
    }
  }, [code, language])
  return result?.code === code ? result.node : undefined
}
