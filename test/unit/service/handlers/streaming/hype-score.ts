import t from 'tap'
import {
  scoreHype,
  type Attention,
  type HypeScore,
} from '../../../../../src/service/handlers/streaming/hype-score.ts'

const CASES: readonly (readonly [string, Attention, HypeScore])[] = [
  [
    'a large category on the rise',
    { sharePercent: 14.7, momentumPercent: 12.5, topShare: 0.248 },
    { score: 61.7, components: { share: 0.5967, momentum: 0.5625, breadth: 0.752 } },
  ],
  [
    'one that was never seen before is neither rising nor falling',
    { sharePercent: 1, momentumPercent: null, topShare: 0.5 },
    { score: 32.5, components: { share: 0.1502, momentum: 0.5, breadth: 0.5 } },
  ],
  [
    'more than twice its average counts as twice',
    { sharePercent: 0.5, momentumPercent: 900, topShare: 0.3 },
    { score: 48.4, components: { share: 0.0879, momentum: 1, breadth: 0.7 } },
  ],
  [
    'one channel with all viewers there are',
    { sharePercent: 100, momentumPercent: 0, topShare: 1 },
    { score: 65, components: { share: 1, momentum: 0.5, breadth: 0 } },
  ],
  [
    'nobody watches any more',
    { sharePercent: 0, momentumPercent: -100, topShare: 1 },
    { score: 0, components: { share: 0, momentum: 0, breadth: 0 } },
  ],
]

t.test('computes every hype score by its published formula, to the digit', async (t) => {
  for (const [name, attention, score] of CASES) t.strictSame(scoreHype(attention), score, name)
})
