/**
 * Nodes of our own, beside Kafka's: what Kafka's controller and brokers say to each other by requests,
 * and ours through ZooKeeper. They stand outside Kafka's layout, and nothing of Kafka's reads them.
 *
 * A broker's answer carries its epoch, so that one of an earlier life of the same broker counts for
 * nothing.
 */

import { type Content, row } from './layout.ts';
import { nothing } from './layout-admin.ts';
import { intOf, parseDecimal, parseObject, textOf, toJson } from './layout-fields.ts';

export interface DeletionOrder {
  readonly controllerEpoch: number;
  readonly topicId: string | null;
}

const orderContent: Content<DeletionOrder> = {
  schema: '{"controller_epoch":1,"topic_id":"base64url"}',
  parse(text) {
    const json = parseObject(text);
    return { controllerEpoch: intOf(json, 'controller_epoch'), topicId: textOf(json, 'topic_id') };
  },
  format: ({ controllerEpoch, topicId }) =>
    toJson({ controller_epoch: controllerEpoch, topic_id: topicId }),
};

const brokerEpochContent: Content<bigint> = {
  schema: 'broker epoch, decimal',
  parse: (text) => parseDecimal(text, 'broker epoch'),
  format: (epoch) => String(epoch),
};

export interface Leaving {
  readonly brokerEpoch: bigint;
  /** The controller has done what it could: nobody waits for more. */
  readonly isDone: boolean;
}

const leavingContent: Content<Leaving> = {
  schema: '{"broker_epoch":"decimal","done":false}',
  parse(text) {
    const json = parseObject(text);
    const brokerEpoch = parseDecimal(textOf(json, 'broker_epoch'), 'broker_epoch');
    return { brokerEpoch, isDone: json.done === true };
  },
  format: ({ brokerEpoch, isDone }) => toJson({ broker_epoch: String(brokerEpoch), done: isDone }),
};

const persistent = 'persistent';
const ephemeral = 'ephemeral';

// biome-ignore format: a table is read down its columns
export const layoutDrover = {
  /** Topics whose replicas are to be deleted now, and who has done so. */
  deletions: row({ path: '/drover/deletions',                  kind: persistent, content: nothing,            writer: 'broker',     watcher: 'brokers (recursive)' }),
  deletion:  row({ path: '/drover/deletions/[topic]',          kind: persistent, content: orderContent,       writer: 'controller', watcher: 'controller (children)' }),
  deleted:   row({ path: '/drover/deletions/[topic]/[broker]', kind: ephemeral,  content: brokerEpochContent, writer: 'broker',     watcher: '' }),
  /** Brokers that want to hand over what they lead before they go. */
  leavings:  row({ path: '/drover/leaving',                    kind: persistent, content: nothing,            writer: 'broker',     watcher: 'controller (children)' }),
  leaving:   row({ path: '/drover/leaving/[broker]',           kind: ephemeral,  content: leavingContent,     writer: 'broker',     watcher: 'broker (data)' }),
} as const;
