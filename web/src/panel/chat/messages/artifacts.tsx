/** The files that came with an answer: pictures are shown, everything can be downloaded. */

import type { ChatMessageView } from '../../../../../src/client/live-conversation.ts'
import { FileIcon } from '../../../ui/icons.tsx'
import { sizeText } from '../writing/attachments.ts'

type ArtifactView = NonNullable<ChatMessageView['reply']>['artifacts'][number]
type ArtifactFileView = ArtifactView['files'][number]

interface ArtifactsProps {
  readonly taskId: string
  readonly artifacts: readonly ArtifactView[]
}

export function Artifacts({ taskId, artifacts }: ArtifactsProps) {
  if (artifacts.length === 0) return null
  return (
    <ul aria-label="Files of the answer" className="mt-1 flex min-w-0 flex-col gap-2">
      {artifacts.map((artifact) => (
        <li key={artifact.id} className="flex min-w-0 flex-col gap-2">
          {artifact.files.length === 0 ? (
            <DownloadLink href={addressOf(taskId, artifact.id)} name={artifact.name ?? 'artifact'} />
          ) : null}
          {artifact.files.map((file, index) => (
            <ArtifactFile
              // biome-ignore lint/suspicious/noArrayIndexKey: two files of an artifact may have the same name.
              key={index}
              file={file}
              name={file.name ?? artifact.name ?? 'file'}
              href={addressOf(taskId, artifact.id, file.part)}
            />
          ))}
        </li>
      ))}
    </ul>
  )
}

const addressOf = (taskId: string, artifactId: string, part?: number): string =>
  `/tasks/${encodeURIComponent(taskId)}/artifacts/${encodeURIComponent(artifactId)}${part === undefined ? '' : `?part=${part}`}`

interface ArtifactFileProps {
  readonly file: ArtifactFileView
  readonly name: string
  readonly href: string
}

function ArtifactFile({ file, name, href }: ArtifactFileProps) {
  const isPicture = file.url === undefined && /^image\/(png|jpeg|gif|webp|avif|svg\+xml)$/.test(file.media_type ?? '')
  return (
    <>
      {isPicture ? (
        <a href={href} download={name} className="self-start">
          <img src={href} alt={name} className="max-h-80 max-w-full rounded-button border border-line bg-raised" />
        </a>
      ) : null}
      <DownloadLink href={href} name={name} bytes={file.bytes} />
    </>
  )
}

interface DownloadLinkProps {
  readonly href: string
  readonly name: string
  readonly bytes?: number
}

const DownloadLink = ({ href, name, bytes }: DownloadLinkProps) => (
  <a
    href={href}
    download={name}
    className="inline-flex min-h-8 max-w-full items-center gap-2 self-start rounded-button border border-line px-2.5 text-second hover:border-edge max-md:min-h-11"
  >
    <FileIcon className="shrink-0 text-soft" />
    <span className="min-w-0 truncate">{name}</span>
    {bytes === undefined ? null : <span className="shrink-0 text-faint text-time">{sizeText(bytes)}</span>}
  </a>
)
