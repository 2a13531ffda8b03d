// The icons of buttons. Screen readers skip the icons, because each button has a name.
const paths = {
  check: 'M3 8.5 6.5 12 13 4.5',
  copy: 'M5.5 5.5V3h7.5v7.5h-2.5M3 5.5h7.5V13H3z',
  menu: 'M2.5 4.5h11M2.5 8h11M2.5 11.5h11',
  more: 'M3 8h.01M8 8h.01M13 8h.01',
  search: 'M7 11.5a4.5 4.5 0 1 0 0-9 4.5 4.5 0 0 0 0 9zM10.4 10.4 13.5 13.5',
  close: 'M4 4l8 8M12 4l-8 8',
  directory: 'M2 4.5h4.5L8 6h6v6.5H2z',
  file: 'M4 2.5h5L12 5.5v8H4zM9 2.5v3h3',
  link: 'M6.5 9.5l3-3M7 5l1.5-1.5a2.5 2.5 0 0 1 4 4L11 9M9 11l-1.5 1.5a2.5 2.5 0 0 1-4-4L5 7',
  special: 'M3 3h10v10H3zM6 6h4v4H6z',
  down: 'M4 6.5 8 10.5 12 6.5',
} as const

export const Icon = ({ name }: { name: keyof typeof paths }) => (
  <svg
    width="16"
    height="16"
    viewBox="0 0 16 16"
    fill="none"
    stroke="currentColor"
    strokeWidth={name === 'more' ? 2.4 : 1.5}
    strokeLinecap="round"
    strokeLinejoin="round"
    aria-hidden="true"
  >
    <path d={paths[name]} />
  </svg>
)
