/** Small icons, drawn with the colour of the text. They are decoration: a label stands beside them or on their button. */
import type { ReactNode } from 'react'

interface IconProps {
  readonly className?: string
}

function Icon({
  className,
  size = 16,
  children,
}: IconProps & { readonly size?: number; readonly children: ReactNode }) {
  return (
    <svg
      aria-hidden="true"
      className={className}
      width={size}
      height={size}
      viewBox="0 0 16 16"
      fill="none"
      stroke="currentColor"
      strokeWidth="1.5"
      strokeLinecap="round"
      strokeLinejoin="round"
    >
      {children}
    </svg>
  )
}

export const CloseIcon = (props: IconProps) => (
  <Icon {...props}>
    <path d="M4 4l8 8M12 4l-8 8" />
  </Icon>
)

export const BackIcon = (props: IconProps) => (
  <Icon {...props}>
    <path d="M10 3L5 8l5 5" />
  </Icon>
)

export const PlusIcon = (props: IconProps) => (
  <Icon size={18} {...props}>
    <path d="M8 3v10M3 8h10" />
  </Icon>
)

export const MoreIcon = (props: IconProps) => (
  <Icon {...props}>
    <g fill="currentColor" stroke="none">
      <circle cx="3.5" cy="8" r="1.3" />
      <circle cx="8" cy="8" r="1.3" />
      <circle cx="12.5" cy="8" r="1.3" />
    </g>
  </Icon>
)

export const CheckIcon = (props: IconProps) => (
  <Icon size={14} {...props}>
    <path d="M3.5 8.5l3 3 6-7" />
  </Icon>
)

export const CopyIcon = (props: IconProps) => (
  <Icon {...props}>
    <rect x="5.5" y="5.5" width="7.5" height="7.5" rx="1.5" />
    <path d="M10.5 3.5V3A1.5 1.5 0 0 0 9 1.5H4A1.5 1.5 0 0 0 2.5 3v5A1.5 1.5 0 0 0 4 9.5h.5" />
  </Icon>
)

export const WorkspacesIcon = (props: IconProps) => (
  <Icon size={20} {...props}>
    <circle cx="5" cy="11" r="3" />
    <circle cx="12" cy="4" r="2.2" />
    <path d="M7.2 8.9l3.2-3.3" />
  </Icon>
)

export const BellIcon = (props: IconProps) => (
  <Icon size={20} {...props}>
    <path d="M8 2a4 4 0 0 0-4 4v2.5L3 11h10l-1-2.5V6a4 4 0 0 0-4-4zM6.7 13.3a1.4 1.4 0 0 0 2.6 0" />
  </Icon>
)

export const FindIcon = (props: IconProps) => (
  <Icon size={20} {...props}>
    <circle cx="7" cy="7" r="4.2" />
    <path d="M10.2 10.2L13.5 13.5" />
  </Icon>
)

/** The mark of the product: two dots and a bond. */
export function Logo() {
  return (
    <svg aria-hidden="true" width="18" height="18" viewBox="0 0 18 18">
      <path d="M6 12L13 5" className="stroke-ink" strokeWidth="1.6" />
      <circle cx="5.2" cy="12.6" r="4" className="fill-accent" />
      <circle cx="13.8" cy="4.4" r="2.8" className="fill-ink" />
    </svg>
  )
}

export const ChevronIcon = (props: IconProps) => (
  <Icon size={12} {...props}>
    <path d="M3 5.5l5 5 5-5" />
  </Icon>
)

export const DownIcon = (props: IconProps) => (
  <Icon size={14} {...props}>
    <path d="M8 3v10M4 9l4 4 4-4" />
  </Icon>
)

export const FileIcon = (props: IconProps) => (
  <Icon size={14} {...props}>
    <path d="M9 1.5H4.5A1.5 1.5 0 0 0 3 3v10a1.5 1.5 0 0 0 1.5 1.5h7A1.5 1.5 0 0 0 13 13V5.5zM9 1.5v4h4" />
  </Icon>
)
