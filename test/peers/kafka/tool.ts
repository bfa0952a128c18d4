/** Kafka's own command-line tools, by class name: what they print, or an error with it. */

import { execFile } from 'node:child_process';
import { kafkaJvmFlags } from './broker.ts';
import type { KafkaPeer } from './fetch.ts';

// biome-ignore format: a table is read down its columns
const classes = {
  topics:   'org.apache.kafka.tools.TopicCommand',
  offsets:  'org.apache.kafka.tools.GetOffsetShell',
  election: 'org.apache.kafka.tools.LeaderElectionCommand',
  configs:  'kafka.admin.ConfigCommand',
  reassign: 'org.apache.kafka.tools.reassign.ReassignPartitionsCommand',
} as const;

const limitMs = 90_000;

export function kafkaTool(
  peer: KafkaPeer,
  tool: keyof typeof classes,
  args: readonly string[],
): Promise<string> {
  const java = [...kafkaJvmFlags, '-cp', peer.classPath, classes[tool], ...args];
  return new Promise((resolve, reject) => {
    execFile('java', java, { timeout: limitMs, killSignal: 'SIGKILL' }, (error, out, err) => {
      if (error === null) resolve(out);
      else reject(new Error(`kafka ${tool} ${args.join(' ')}: ${out}${err}`, { cause: error }));
    });
  });
}

/** `kafka-topics --describe`, as an object a partition. */
export async function describeTopics(peer: KafkaPeer, bootstrap: string) {
  const text = await kafkaTool(peer, 'topics', ['--bootstrap-server', bootstrap, '--describe']);
  const ids = (list: string) => (list.trim() === '' ? [] : list.trim().split(',').map(Number));
  return text
    .split('\n')
    .map((line) =>
      /Topic: (\S+)\s+Partition: (\d+)\s+Leader: (\S+)\s+Replicas: ([\d,]*)\s+Isr: ([\d,]*)/.exec(
        line,
      ),
    )
    .filter((found) => found !== null)
    .map(([, topic, partition, leader, replicas, isr]) => ({
      topic: topic!,
      partition: Number(partition),
      leader: leader === 'none' ? null : Number(leader),
      replicas: ids(replicas!),
      isr: ids(isr!).sort((a, b) => a - b),
    }))
    .sort((a, b) => (a.topic < b.topic ? -1 : a.topic > b.topic ? 1 : a.partition - b.partition));
}
