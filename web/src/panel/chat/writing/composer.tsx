/**
 * Where a person writes. Enter sends and Shift-Enter begins a new line; on a touch screen Enter begins a new line. No
 * other key changes the text. Files come by drop, by paste and by the button. The text is kept over a reload. While the
 * agent waits for an answer, what is written here is the answer, and the composer says so.
 */
import { useMutation } from '@tanstack/react-query'
import { type ClipboardEvent, type KeyboardEvent, useEffect, useRef, useState } from 'react'
import type { ChatEntry } from '../../../../../src/client/live-conversation.ts'
import { client, reasonOf } from '../../../api/client.ts'
import { useMay } from '../../../api/queries.ts'
import { Button, IconButton } from '../../../ui/button.tsx'
import { Dot } from '../../../ui/dot.tsx'
import { draftKey, readDraft, writeDraft } from '../../../ui/drafts.ts'
import { CloseIcon, FileIcon, PlusIcon } from '../../../ui/icons.tsx'
import { showToast } from '../../../ui/toasts.tsx'
import { isTouch } from '../../../ui/touch.ts'
import type { TabProps } from '../../tab.ts'
import { addFiles, type ChosenFile, FILES_BYTES_MAX, FILES_MAX, sizeText } from './attachments.ts'
import { sendMessage } from './outgoing.ts'

const LIMITS = `Up to ${FILES_MAX} files, ${sizeText(FILES_BYTES_MAX)} together`

interface ComposerProps extends TabProps {
  readonly contextId: string
  /** The message that runs or waits for a person. */
  readonly running: ChatEntry | undefined
  /** The message whose agent asks a question. */
  readonly asking: ChatEntry | undefined
}

export function Composer({ workspace, contextId, running, asking }: ComposerProps) {
  const key = draftKey(workspace.id, contextId)
  const [text, setText] = useState(() => readDraft(key))
  const [files, setFiles] = useState<readonly ChosenFile[]>([])
  const [problem, setProblem] = useState<string>()
  const attach = (added: readonly File[]) => {
    const result = addFiles(files, added)
    setFiles(result.files)
    setProblem(result.problem)
  }
  const write = (value: string) => {
    setText(value)
    writeDraft(key, value)
  }
  const canSend = text.trim() !== '' || files.length > 0
  const answering = useAnswering(asking, canSend)
  const { taskId } = answering
  const send = () => {
    if (!canSend) return
    sendMessage({ workspaceId: workspace.id, contextId, text: text.trim(), files, ...(taskId && { taskId }) })
    write('')
    setFiles([])
    setProblem(undefined)
  }
  const drop = useDrop(attach)
  return (
    <div className="shrink-0 border-line border-t px-4 pt-3 pb-4 max-md:px-3 max-md:pb-[max(12px,env(safe-area-inset-bottom))]">
      {drop.isOver ? <DropHint /> : null}
      {asking === undefined ? null : <AnswerLine name={workspace.name} {...answering} />}
      <div className={BOX}>
        <TextBox
          label={`${taskId === undefined ? 'Message' : 'Answer'} ${workspace.name}`}
          text={text}
          onWrite={write}
          onSend={send}
          onFiles={attach}
        />
        <div className="[grid-area:files]">
          <FileChips files={files} onRemove={(gone) => setFiles(files.filter((file) => file.key !== gone))} />
          {problem === undefined ? null : (
            <p role="alert" className="px-3 pt-2 text-needs text-time">
              {problem}
            </p>
          )}
        </div>
        <AttachButton onFiles={attach} />
        <span className="min-w-0 truncate text-faint text-time [grid-area:hint] max-md:hidden">
          {files.length > 0 ? LIMITS : `Enter ${taskId === undefined ? 'sends' : 'answers'}`}
        </span>
        <div className="flex gap-2 p-2 [grid-area:buttons] empty:hidden max-md:p-1">
          <StopButton workspaceId={workspace.id} running={running} />
          {canSend ? (
            <Button variant="ink" onClick={send}>
              {taskId === undefined ? 'Send' : 'Answer'}
            </Button>
          ) : null}
        </div>
      </div>
    </div>
  )
}

interface Answering {
  /** The task that the text answers; undefined for a new message. */
  readonly taskId: string | undefined
  readonly toggle: () => void
}

/** A text that was begun before the question came stays a message, until the person says that it is the answer. */
function useAnswering(asking: ChatEntry | undefined, hasText: boolean): Answering {
  const question = asking === undefined ? undefined : `${asking.id} ${asking.reason}`
  const [seen, setSeen] = useState({ question, isAnswer: true })
  if (seen.question !== question) setSeen({ question, isAnswer: !hasText })
  return {
    taskId: seen.isAnswer ? asking?.task_id : undefined,
    toggle: () => setSeen({ question, isAnswer: !seen.isAnswer }),
  }
}

function AnswerLine({ name, taskId, toggle }: Answering & { readonly name: string }) {
  const isAnswer = taskId !== undefined
  return (
    <p className="mb-2 flex items-center gap-2 text-second text-soft">
      <Dot state="needs" />
      <span className="min-w-0 flex-1">
        {isAnswer ? `This answers the question of ${name}.` : `${name} waits for an answer.`}
      </span>
      <Button variant="quiet" onClick={toggle}>
        {isAnswer ? 'Write a new message' : 'Answer the question'}
      </Button>
    </p>
  )
}

/** The buttons stand below the text, and on a phone beside it. */
const BOX = [
  'grid grid-cols-[auto_1fr_auto] items-center rounded-box border border-edge bg-raised',
  "[grid-template-areas:'files_files_files'_'text_text_text'_'attach_hint_buttons']",
  "max-md:items-end max-md:[grid-template-areas:'files_files_files'_'attach_text_buttons']",
  'has-[textarea:focus-visible]:outline-2 has-[textarea:focus-visible]:outline-accent',
].join(' ')

interface TextBoxProps {
  readonly label: string
  readonly text: string
  readonly onWrite: (text: string) => void
  readonly onSend: () => void
  readonly onFiles: (files: readonly File[]) => void
}

function TextBox({ label, text, onWrite, onSend, onFiles }: TextBoxProps) {
  const box = useRef<HTMLTextAreaElement>(null)
  // On a phone the focus would open the keyboard over the conversation.
  useEffect(() => {
    if (!isTouch()) box.current?.focus({ preventScroll: true })
  }, [])
  const onKeyDown = (event: KeyboardEvent) => {
    // Enter also ends the input of a character in scripts that need several keys for one.
    if (event.key !== 'Enter' || event.shiftKey || event.nativeEvent.isComposing || isTouch()) return
    event.preventDefault()
    onSend()
  }
  const onPaste = (event: ClipboardEvent) => {
    if (event.clipboardData.files.length === 0) return
    event.preventDefault()
    onFiles([...event.clipboardData.files])
  }
  return (
    <textarea
      ref={box}
      aria-label={label}
      placeholder={label}
      dir="auto"
      rows={1}
      value={text}
      onChange={(event) => onWrite(event.target.value)}
      onKeyDown={onKeyDown}
      onPaste={onPaste}
      className="field-sizing-content max-h-50 min-h-10 w-full resize-none bg-transparent px-3 pt-2.5 pb-1 text-body outline-none [grid-area:text] max-md:min-h-12 max-md:px-1 max-md:py-3 max-md:text-title"
    />
  )
}

/** The whole page takes files while the composer is there: a file that misses it must not replace the page. */
function useDrop(onFiles: (files: readonly File[]) => void) {
  const [isOver, setOver] = useState(false)
  const take = useRef(onFiles)
  take.current = onFiles
  useEffect(() => {
    const hasFiles = (event: globalThis.DragEvent) => event.dataTransfer?.types.includes('Files') ?? false
    const onOver = (event: globalThis.DragEvent) => {
      if (!hasFiles(event)) return
      event.preventDefault()
      setOver(true)
    }
    const onLeave = (event: globalThis.DragEvent) => {
      if (event.relatedTarget === null) setOver(false)
    }
    const onDrop = (event: globalThis.DragEvent) => {
      if (!hasFiles(event)) return
      event.preventDefault()
      setOver(false)
      take.current([...(event.dataTransfer?.files ?? [])])
    }
    addEventListener('dragover', onOver)
    addEventListener('dragleave', onLeave)
    addEventListener('drop', onDrop)
    return () => {
      removeEventListener('dragover', onOver)
      removeEventListener('dragleave', onLeave)
      removeEventListener('drop', onDrop)
    }
  }, [])
  return { isOver }
}

const DropHint = () => (
  <p className="mb-2 rounded-box border border-accent border-dashed bg-accent-soft px-3 py-4 text-center text-second">
    Drop files to attach them. {LIMITS}.
  </p>
)

interface FileChipsProps {
  readonly files: readonly ChosenFile[]
  readonly onRemove: (key: string) => void
}

function FileChips({ files, onRemove }: FileChipsProps) {
  if (files.length === 0) return null
  return (
    <ul aria-label="Attached files" className="flex flex-wrap gap-2 px-3 pt-3">
      {files.map(({ key, file }) => (
        <li
          key={key}
          className="flex max-w-full items-center gap-1.5 rounded-button border border-line bg-surface pl-2 text-second"
        >
          <FileIcon className="shrink-0 text-soft" />
          <span className="min-w-0 truncate">{file.name}</span>
          <span className="shrink-0 text-faint text-time">{sizeText(file.size)}</span>
          <IconButton label={`Remove ${file.name}`} className="size-7" onClick={() => onRemove(key)}>
            <CloseIcon className="size-3" />
          </IconButton>
        </li>
      ))}
    </ul>
  )
}

function AttachButton({ onFiles }: { readonly onFiles: (files: readonly File[]) => void }) {
  const input = useRef<HTMLInputElement>(null)
  return (
    <>
      <Button
        variant="quiet"
        title={LIMITS}
        aria-label={`Attach files. ${LIMITS}`}
        className="my-2 ml-1.5 px-1.5 font-normal [grid-area:attach] max-md:m-0.5"
        onClick={() => input.current?.click()}
      >
        <PlusIcon className="size-4" />
        <span className="max-md:hidden">Attach</span>
      </Button>
      <input
        ref={input}
        type="file"
        multiple
        hidden
        onChange={(event) => {
          onFiles([...(event.target.files ?? [])])
          // The same file can be chosen again.
          event.target.value = ''
        }}
      />
    </>
  )
}

interface StopButtonProps {
  readonly workspaceId: string
  readonly running: ChatEntry | undefined
}

function StopButton({ workspaceId, running }: StopButtonProps) {
  const may = useMay()
  const stop = useMutation({
    mutationFn: (taskId: string) => client.cancelTask(workspaceId, taskId),
    onError: (error) => showToast(reasonOf(error)),
  })
  if (running === undefined || !may('task.cancel')) return null
  return (
    <Button disabled={stop.isPending} onClick={() => stop.mutate(running.task_id)}>
      Stop
    </Button>
  )
}
