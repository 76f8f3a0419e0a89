/** What channels share in their calls to a service: was a failed request sent at all, and files with a size limit. */
import { MoleculeError } from '../../errors.ts'

/** Codes of Node and undici for a connection that was never made. Every other failure may have reached the service. */
const NOT_SENT_CODES: ReadonlySet<unknown> = new Set([
  'ECONNREFUSED',
  'ENOTFOUND',
  'EAI_AGAIN',
  'EHOSTUNREACH',
  'ENETUNREACH',
  'UND_ERR_CONNECT_TIMEOUT',
  'CERT_HAS_EXPIRED',
  'DEPTH_ZERO_SELF_SIGNED_CERT',
  'ERR_TLS_CERT_ALTNAME_INVALID',
])
/** How deep the libraries wrap the error of the socket. */
const WRAPPERS_MAX = 5

/** The code of the socket's error, wherever the library keeps it. Its message may contain a token and is never used. */
export function networkCode(error: unknown): string | undefined {
  let current = error
  for (let depth = 0; depth < WRAPPERS_MAX && typeof current === 'object' && current !== null; depth++) {
    const { code, cause, error: inner, errors } = current as Record<string, unknown>
    if (typeof code === 'string') return code
    current = cause ?? inner ?? (Array.isArray(errors) ? errors[0] : undefined)
  }
  return undefined
}

/** True when the request surely did not reach the service. */
export function wasNeverSent(error: unknown): boolean {
  return NOT_SENT_CODES.has(networkCode(error))
}

/** A download holds up the later messages of its chat. Longer than this it has failed, however slowly bytes still arrive. */
const DOWNLOAD_MS_MAX = 3 * 60_000

interface DownloadOptions {
  readonly bytesMax: number
  readonly service: string
  /** For a service whose files need its token. A redirect is not followed, so no other host gets them. */
  readonly headers?: Readonly<Record<string, string>>
  readonly timeoutMs?: number
}

/** The bytes behind a URL of the service. The URL may contain the token, so no error names it. */
export async function downloadFile(
  url: string,
  { bytesMax, service, headers, timeoutMs = DOWNLOAD_MS_MAX }: DownloadOptions,
  signal: AbortSignal,
): Promise<Uint8Array> {
  const late = AbortSignal.timeout(timeoutMs)
  const tooLarge = () => new MoleculeError('too_large', `the file is larger than ${bytesMax} bytes`)
  const failed = (problem: string) =>
    new MoleculeError('provider_unreachable', `the file could not be downloaded from ${service}: ${problem}`, {
      retryable: true,
    })
  try {
    const response = await fetch(url, { headers, signal: AbortSignal.any([signal, late]), redirect: 'error' })
    if (!response.ok) throw failed(`it answers ${response.status}`)
    if (Number(response.headers.get('content-length') ?? 0) > bytesMax) throw tooLarge()
    const chunks: Uint8Array[] = []
    let bytes = 0
    for await (const chunk of response.body ?? []) {
      bytes += chunk.length
      if (bytes > bytesMax) throw tooLarge()
      chunks.push(chunk)
    }
    return Buffer.concat(chunks)
  } catch (error) {
    if (error instanceof MoleculeError) throw error
    throw failed(late.aborted ? 'it takes too long' : (networkCode(error) ?? 'the connection ended'))
  }
}
