/** Whether the page is used with fingers. There a field that gets the focus opens the keyboard over the page. */
export const isTouch = (): boolean => matchMedia('(pointer: coarse)').matches
