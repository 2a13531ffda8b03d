import type { Slot } from '../network/pool.ts'
import type { Init } from './processes.ts'

/** What is recorded about a sandbox only while it runs. */
export type Running = { init: Init; slot: Slot; isPaused: boolean }
