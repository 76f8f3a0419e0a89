/** A text as it is, with its lines. */
export const PlainText = ({ text }: { readonly text: string }) => (
  <div dir="auto" className="min-w-0 whitespace-pre-wrap break-words">
    {text}
  </div>
)
