// Draws a curve with the library uPlot. This file is loaded only when there is a curve to draw.
import { useEffect, useRef } from 'react'
import UPlot from 'uplot'
import 'uplot/dist/uPlot.min.css'
import './chart.css'
import { type Curve, type Quantity, shortNumber } from './usage.ts'

const chartHeight = 130

/** The present value of a CSS variable that holds a colour. A canvas cannot use CSS variables itself. */
const colourOf = (place: Element, token: string): string => {
  const probe = document.createElement('span')
  probe.style.color = `var(${token})`
  place.append(probe)
  const { color } = getComputedStyle(probe)
  probe.remove()
  return color
}

const clock = new Intl.DateTimeFormat(undefined, { hour: '2-digit', minute: '2-digit' })
const day = new Intl.DateTimeFormat(undefined, { day: 'numeric', month: 'short' })

const tickText = (seconds: number): string => {
  const date = new Date(seconds * 1000)
  return date.getHours() === 0 && date.getMinutes() === 0 ? day.format(date) : clock.format(date)
}

const optionsFor = (place: Element, { name, text, limit }: Quantity, range: [number, number], width: number) => {
  const colour = (token: string) => () => colourOf(place, token)
  const axis = {
    stroke: colour('--muted'),
    grid: { stroke: colour('--line'), width: 1 },
    ticks: { show: false },
    font: '11px system-ui, sans-serif',
  }
  const value = (_: UPlot, given: number | null | undefined) => (given == null ? '–' : text(given))
  return {
    width,
    height: chartHeight,
    cursor: { sync: { key: 'usage' }, drag: { x: false, y: false } },
    scales: {
      x: { range },
      y: { range: (_: UPlot, __: number, most: number) => [0, (limit === undefined ? 100 : most || 1) * 1.05] },
    },
    axes: [
      { ...axis, values: (_: UPlot, ticks: number[]) => ticks.map(tickText), space: 64, size: 24 },
      { ...axis, values: (_: UPlot, ticks: number[]) => ticks.map(shortNumber), size: 42, space: 28 },
    ],
    series: [
      { label: 'Time', value: (_: UPlot, seconds: number | null) => (seconds === null ? '–' : tickText(seconds)) },
      { label: name, stroke: colour('--accent'), width: 1.5, value, points: { show: false } },
      ...(limit === undefined
        ? []
        : [
            { label: 'Limit', stroke: colour('--line-strong'), width: 1, dash: [4, 4], value, points: { show: false } },
          ]),
    ],
  } as unknown as UPlot.Options
}

type ChartProps = { quantity: Quantity; curve: Curve; from: number; to: number }

/** Draws one quantity over time, and the limit of that quantity. `from` and `to` are in seconds since 1970. */
const Chart = ({ quantity, curve, from, to }: ChartProps) => {
  const place = useRef<HTMLDivElement>(null)
  useEffect(() => {
    const element = place.current!
    const options = optionsFor(element, quantity, [from, to], element.clientWidth)
    const { times, used, limit } = curve
    const lines = quantity.limit === undefined ? [used] : [used, limit]
    const plot = new UPlot(options, [times, ...lines], element)
    const redraw = () => plot.redraw(false)
    const resize = new ResizeObserver(() => plot.setSize({ width: element.clientWidth, height: chartHeight }))
    const theme = new MutationObserver(redraw)
    const system = matchMedia('(prefers-color-scheme: dark)')
    resize.observe(element)
    theme.observe(document.documentElement, { attributeFilter: ['data-theme'] })
    system.addEventListener('change', redraw)
    return () => {
      resize.disconnect()
      theme.disconnect()
      system.removeEventListener('change', redraw)
      plot.destroy()
    }
  }, [quantity, curve, from, to])
  // Screen readers skip the canvas, because the sentence above the canvas has the same content in words.
  return <div ref={place} className="chart" aria-hidden="true" />
}

export default Chart
