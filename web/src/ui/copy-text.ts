/** Copies a text, also on a page that came by plain http under a name: browsers give such a page no clipboard. */
import { showToast } from './toasts.tsx'

/** False where the browser does not allow it; the person is told. */
export async function copyText(text: string): Promise<boolean> {
  const isCopied = await (navigator.clipboard === undefined ? copySelected(text) : copyToClipboard(text))
  if (!isCopied) showToast('The browser does not allow copying here.')
  return isCopied
}

const copyToClipboard = (text: string): Promise<boolean> =>
  navigator.clipboard.writeText(text).then(
    () => true,
    () => false,
  )

/** The older way copies what is selected. Behind an open dialog nothing can be selected. */
function copySelected(text: string): boolean {
  const focused = document.activeElement
  const area = document.createElement('textarea')
  area.className = 'sr-only'
  area.value = text
  const place = [...document.querySelectorAll('dialog[open]')].at(-1) ?? document.body
  place.append(area)
  area.select()
  const isCopied = document.execCommand('copy')
  area.remove()
  if (focused instanceof HTMLElement) focused.focus({ preventScroll: true })
  return isCopied
}
