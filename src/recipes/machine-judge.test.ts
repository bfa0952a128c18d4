import { expect, test } from 'vitest';
import { judge, type MachineFacts } from './machine-judge.ts';

const facts: MachineFacts = {
  isPresent: true,
  wasEverSeen: true,
  beatAtMs: 1_000,
  unattachedTimes: 0,
};
const calm = { nowMs: 1_500, isCurrent: true, beatWithinMs: 1_000 };

// biome-ignore format: a table is read down its columns
test.each([
  ['here, linked and beating',            {},                                        {},                         'up', 'present'],
  ['the last beat just in time',          {},                                        { nowMs: 2_000 },           'up', 'present'],
  ['the last beat too long ago',          {},                                        { nowMs: 2_001 },           'suspect', 'noBeat'],
  ['no beats are expected',               {},                                        { nowMs: 9e9, beatWithinMs: undefined }, 'up', 'present'],
  ['no link at one look',                 { unattachedTimes: 1 },                    {},                         'up', 'present'],
  ['no link at two looks',                { unattachedTimes: 2 },                    {},                         'suspect', 'linkLost'],
  ['the monitor is cut off',              {},                                        { isCurrent: false },       'suspect', 'cutOff'],
  ['its node is gone',                    { isPresent: false },                      {},                         'down', 'gone'],
  ['gone, and the monitor is cut off',    { isPresent: false },                      { isCurrent: false },       'down', 'gone'],
  ['expected and never seen',             { isPresent: false, wasEverSeen: false },  {},                         'down', 'neverSeen'],
] as const)('%s', (_, some, more, state, reason) => {
  expect(judge({ ...facts, ...some }, { ...calm, ...more })).toEqual({ state, reason });
});
