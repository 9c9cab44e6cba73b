/** From one new moon to the next, in days. */
const MONTH = 29.530588853
/** A new moon. */
const NEW_MOON = Date.UTC(2000, 0, 6, 18, 14)
const DAY = 86_400_000

const PHASES = [
  'new moon',
  'waxing crescent',
  'first quarter',
  'waxing gibbous',
  'full moon',
  'waning gibbous',
  'last quarter',
  'waning crescent',
]

/**
 * What is sold at /paid/moon/{date}. Parameters arrive checked and complete; a buyer is charged only for what is
 * returned. To refuse, throw: `import { Failure } from 'ratecard/handler'`, `throw new Failure('not_found', 'why')`.
 *
 * @type {import('./catalog.d.ts').Handler<'moon'>}
 */
export const moon = async ({ date }) => {
  const days = (Date.parse(`${date}T12:00:00Z`) - NEW_MOON) / DAY
  const part = (((days % MONTH) + MONTH) % MONTH) / MONTH
  return {
    source: [{ name: 'computed' }],
    body: {
      date,
      age_days: Math.round(part * MONTH * 10) / 10,
      lit: Math.round((1 - Math.cos(part * 2 * Math.PI)) * 50) / 100,
      phase: PHASES[Math.round(part * PHASES.length) % PHASES.length] ?? '',
    },
  }
}
