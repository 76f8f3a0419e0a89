/** Reads the lists of the platform page by page. */

export interface Paged {
  readonly next?: string
}

/** More pages than any list has; a platform that never ends a list is left here. */
const PAGES_MAX = 1000

export async function allPages<Page extends Paged>(read: (next: string | undefined) => Promise<Page>): Promise<Page[]> {
  const pages: Page[] = [await read(undefined)]
  for (let next = pages[0]?.next; next !== undefined && pages.length < PAGES_MAX; ) {
    const page = await read(next)
    pages.push(page)
    next = page.next
  }
  return pages
}

export const withAfter = (path: string, after: string | undefined): string =>
  after === undefined ? path : `${path}${path.includes('?') ? '&' : '?'}after=${encodeURIComponent(after)}`
