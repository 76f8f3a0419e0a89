/** Whether the page is as narrow as a phone: the same width as `max-md` in the styles. */
import { useSyncExternalStore } from 'react'

const query = matchMedia('(width < 768px)')

export const usePhone = (): boolean =>
  useSyncExternalStore(
    (listener) => {
      query.addEventListener('change', listener)
      return () => query.removeEventListener('change', listener)
    },
    () => query.matches,
  )
